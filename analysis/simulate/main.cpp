// idlescope-simulate: writes recordings of simulated training jobs with their truth.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "analysis/simulate/scenario_files.h"
#include "analysis/simulate/scenario_sets.h"
#include "analysis/simulate/verdict_shares.h"

namespace {

using idlescope::simulate::Scenario;
namespace simulate = idlescope::simulate;
namespace report = idlescope::report;
namespace fs = std::filesystem;

void in_parallel(size_t count, unsigned jobs, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned j = 0; j < jobs; ++j) {
    workers.emplace_back([&] {
      for (size_t i = next++; i < count; i = next++) work(i);
    });
  }
  for (std::thread& worker : workers) worker.join();
}

// One directory: the recorded files and truth.pb. With `only_digest` just a line with their hash.
bool write_scenario(Scenario scenario, const fs::path& directory, bool only_digest) {
  simulate::tune(&scenario);
  auto files = simulate::scenario_files(scenario);
  if (!files) {
    std::fprintf(stderr, "idlescope-simulate: %s: the job never ends\n", scenario.name.c_str());
    return false;
  }
  if (only_digest) {
    std::printf("%016llx %s\n", static_cast<unsigned long long>(simulate::digest(*files)),
                scenario.name.c_str());
    return true;
  }
  fs::path place = directory / scenario.name;
  std::error_code error;
  fs::create_directories(place, error);
  bool written = true;
  for (const auto& [name, content] : *files) {
    std::ofstream out(place / name, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    written = out.flush() && written;
  }
  if (!written) std::fprintf(stderr, "idlescope-simulate: cannot write %s\n", place.c_str());
  return written;
}

// For every mechanism and share `count` jobs: gain, charged, charged to blocking calls, largest
// charge elsewhere.
void print_gains(size_t count, unsigned jobs) {
  struct Row {
    Scenario scenario;
    simulate::ChargeAndGain result;
  };
  std::vector<Row> rows;
  for (const simulate::Mechanism& m : simulate::mechanisms()) {
    for (double share : {0.05, 0.2, 0.5}) {
      for (size_t i = 0; i < count; ++i) {
        uint64_t seed = 6'000'000 + 2 * i;  // of no set
        rows.push_back({simulate::single_scenario(m.cause, m.name, share, "clean", seed), {}});
      }
    }
  }
  in_parallel(rows.size(), jobs, [&](size_t i) {
    simulate::tune(&rows[i].scenario);
    rows[i].result = simulate::charge_and_gain(rows[i].scenario, 0);
  });
  for (const Row& row : rows) {
    const simulate::InjectedCause& cause = row.scenario.causes[0];
    const simulate::ChargeAndGain& r = row.result;
    bool other = !r.elsewhere.empty();
    std::printf("%s %s %.2f %llu %.4f %.4f %.4f %.4f %s\n", cause.id.c_str(),
                cause.mechanism.c_str(), cause.target_share,
                static_cast<unsigned long long>(row.scenario.seed), r.gain, r.charged, r.blocking,
                other ? r.elsewhere[0].first : 0.0,
                other ? report::Verdict_Name(r.elsewhere[0].second).c_str() : "-");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Writes recordings of simulated training jobs, each with its truth (truth.pb)."};
  std::string set;
  std::string out = "simulated";
  std::string cause;
  std::string mechanism;
  std::string profile = "clean";
  double severity = 0.2;
  uint64_t seed = 1;
  size_t count = 0;
  size_t gains = 0;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool list = false;
  bool digests = false;
  app.add_option("--set", set, "A whole set: tuning, reporting, or reporting1 (older seeds)")
      ->check(CLI::IsMember({"tuning", "reporting", "reporting1"}));
  app.add_option("--out", out, "Directory; one sub-directory a recording");
  app.add_option("--count", count, "Take so many of the set, evenly spread");
  app.add_option("--cause", cause, "One recording with this cause; none: a healthy job");
  app.add_option("--mechanism", mechanism, "How the cause comes about");
  app.add_option("--severity", severity, "Share of the step that removing the cause saves")
      ->check(CLI::Range(0.0, 0.8));
  app.add_option("--profile", profile, "What the recorder gets wrong")
      ->check(CLI::IsMember({"clean", "skew", "lossy", "sparse"}));
  app.add_option("--seed", seed, "Everything random follows from it");
  app.add_option("--jobs", jobs, "Recordings made at the same time");
  app.add_flag("--digest", digests,
               "Write no files, print a hash of each recording with its truth");
  app.add_option("--gains", gains,
                 "For every mechanism and share so many jobs: what it gains, what it is charged");
  app.add_flag("--list", list, "List causes and mechanisms");
  CLI11_PARSE(app, argc, argv);

  if (list) {
    for (const simulate::Mechanism& m : simulate::mechanisms()) {
      std::printf("%-16s %-24s %s\n", m.cause, m.name, m.reporting ? "reporting only" : "");
    }
    return 0;
  }
  if (gains > 0) {
    print_gains(gains, jobs);
    return 0;
  }
  std::vector<Scenario> scenarios;
  if (!set.empty()) {
    scenarios = simulate::scenario_set(set, count);
  } else if (!cause.empty()) {
    if (cause != "none" && simulate::find_mechanism(cause, mechanism) == nullptr) {
      std::fprintf(stderr, "idlescope-simulate: no cause %s %s (see --list)\n", cause.c_str(),
                   mechanism.c_str());
      return 2;
    }
    scenarios.push_back(simulate::single_scenario(cause, mechanism, severity, profile, seed));
  } else {
    std::fprintf(stderr, "idlescope-simulate: say --set or --cause\n");
    return 2;
  }
  std::atomic<bool> good{true};
  in_parallel(scenarios.size(), jobs, [&](size_t i) {
    if (!write_scenario(scenarios[i], out, digests)) good = false;
  });
  return good ? 0 : 1;
}
