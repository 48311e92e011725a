// A trace that was cut anywhere is still read, and the report says that something is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/properties/packets.h"
#include "tests/properties/recordings.h"

namespace idlescope::test {
namespace {

// Ends of the packets of a file, and the first byte of the reserved room behind them.
std::vector<size_t> boundaries(const std::string& bytes) {
  std::vector<size_t> ends;
  size_t at = 0;
  uint64_t length = 0;
  while (take_packet_head(bytes, at, length)) {
    at += length;
    ends.push_back(at);
  }
  return ends;
}

// The last byte that is not reserved room inside or behind a packet.
size_t last_written(const std::string& bytes) {
  size_t end = bytes.size();
  while (end > 0 && bytes[end - 1] == '\0') --end;
  return end;
}

bool says_so(const Answer& answer) {
  if (!answer.read) return !answer.fault.empty();
  static const std::set<std::string> kIds = {"trace-truncated", "trace-unfinished",
                                             "trace-cut-short", "file-skipped"};
  for (const report::Anomaly& anomaly : answer.report.anomalies()) {
    if (kIds.contains(anomaly.id())) return true;
  }
  return false;
}

class Cuts : public testing::TestWithParam<std::string> {};

TEST_P(Cuts, AreSaid) {
  const Files whole = files_of(GetParam());
  ASSERT_FALSE(says_so(answer_to(whole)));
  std::mt19937 random(11);
  for (size_t f = 0; f < whole.size(); ++f) {
    const std::string& bytes = whole[f].second;
    const std::vector<size_t> ends = boundaries(bytes);
    const auto somewhere = [&](size_t n) {
      return std::uniform_int_distribution<size_t>(0, n - 1)(random);
    };
    // Between packets, inside of them, after the header, and before the last one.
    std::set<size_t> cuts{0, 1, ends[0] - 1, ends[0], last_written(bytes) - 1};
    if (ends.size() >= 2) cuts.insert(ends[ends.size() - 2]);
    const int more = f == 0 ? 4 : 1;
    for (int i = 0; i < more; ++i) {
      cuts.insert(ends[somewhere(ends.size() - 1)]);
      cuts.insert(somewhere(last_written(bytes)));
    }
    for (const size_t cut : cuts) {
      Files files = whole;
      files[f].second.resize(cut);
      const Answer answer = answer_to(files);
      EXPECT_TRUE(says_so(answer)) << whole[f].first << " cut at " << cut << " of " << bytes.size();
    }
  }
}

// Byte by byte through the end of a file: its last packets and what follows them.
TEST_P(Cuts, AtTheEndAreSaid) {
  const Files whole = files_of(GetParam());
  const std::string& bytes = whole.back().second;
  const size_t end = last_written(bytes);
  for (size_t cut = end - 1; cut + 40 > end; cut -= 3) {
    Files files = whole;
    files.back().second.resize(cut);
    EXPECT_TRUE(says_so(answer_to(files))) << whole.back().first << " cut at " << cut;
  }
}

std::vector<std::string> some_names() {
  std::vector<std::string> names = {simulated_names()[0], simulated_names()[4]};
  for (const char* name : {"copy_pageable.istrace", "mlp_batch_8.istrace",
                           "scenarios/D2-none-recorded-0", "scenarios/T1-none-recorded-0"}) {
    names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Recordings, Cuts, testing::ValuesIn(some_names()),
                         [](const auto& one) { return test_name(one.param); });

}  // namespace
}  // namespace idlescope::test
