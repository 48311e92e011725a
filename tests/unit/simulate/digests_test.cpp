// The same seed gives the same bytes on every machine: hashes of 60 recordings with their truth,
// written down once. A compiler, library or machine that computes anything differently fails.
//
// After a change that is meant to change recordings or truth:
//   IDLESCOPE_WRITE_DIGESTS=tests/unit/simulate/digests.txt simulate_test --gtest_filter=Digests.*
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "analysis/simulate/scenario_files.h"
#include "analysis/simulate/scenario_sets.h"
#include "analysis/simulate/special_scenarios.h"

namespace idlescope::simulate {
namespace {

constexpr int kRecordings = 60;

// Short jobs of all mechanisms and profiles, mixtures and traps; some of them tuned.
Scenario sample(int number) {
  constexpr const char* kProfiles[] = {"clean", "skew", "lossy", "sparse"};
  auto n = static_cast<size_t>(number);
  uint64_t seed = 7'000'000 + 2 * n;  // of no set
  Scenario s;
  if (number % 10 == 8) {
    s = mixed_scenario(3, true, seed);
  } else if (number % 10 == 9) {
    s = trap_scenario(traps()[n % traps().size()], kProfiles[n / 10 % 4], seed);
  } else {
    const Mechanism& m = mechanisms()[n % mechanisms().size()];
    s = single_scenario(m.cause, m.name, 0.2, kProfiles[n % 4], seed);
  }
  s.base.steps = 24;
  for (WindowSpec& w : s.base.windows) {
    if (w.end_step != 0) w = {w.begin_step / 3, w.end_step / 4, w.mid_step};
  }
  if (number % 12 == 0) {
    tune(&s);
  } else {
    for (InjectedCause& cause : s.causes) cause.amount_ns = 2'500'000;
  }
  return s;
}

std::string hexadecimal(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

TEST(Digests, AreThoseOfEveryOtherMachine) {
  std::map<std::string, std::string> expected;
  std::ifstream in(IDLESCOPE_DIGESTS);
  std::string hash;
  std::string name;
  while (in >> hash >> name) expected[name] = hash;
  const char* rewrite = std::getenv("IDLESCOPE_WRITE_DIGESTS");
  std::ofstream out;
  if (rewrite != nullptr) out.open(rewrite);
  for (int i = 0; i < kRecordings; ++i) {
    Scenario s = sample(i);
    auto files = scenario_files(s);
    ASSERT_TRUE(files) << s.name;
    std::string got = hexadecimal(digest(*files));
    if (rewrite != nullptr) {
      out << got << " " << s.name << "\n";
    } else {
      EXPECT_EQ(got, expected[s.name]) << s.name;
    }
  }
}

TEST(Digests, SeeOneChangedByte) {
  std::vector<NamedBytes> files = {{"a", "xy"}, {"b", ""}};
  uint64_t before = digest(files);
  files[0].second[1] = 'z';
  EXPECT_NE(digest(files), before);
  EXPECT_NE(digest({{"a", "x"}, {"b", "y"}}), digest({{"a", "xy"}, {"b", ""}}));
}

}  // namespace
}  // namespace idlescope::simulate
