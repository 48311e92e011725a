// Shares of device time with intervals, by leaf and by verdict.
//
// In: a ledger. Out: shares of the analysed time (less PROFILER and the time between
// notebook cells), with 95 % intervals from a moving-block bootstrap over steps, and the
// probability that the largest verdict is the largest one.
//
// Steps are dealt into at most 200 blocks of consecutive steps (at least 5 each), blocks
// are drawn with replacement, 200 times, by a fixed seed: equal input gives equal output.
#pragma once

#include <vector>

#include "analysis/diagnose/diagnosis.h"
#include "analysis/diagnose/ledger.h"

namespace idlescope::diagnose {

struct Shares {
  Ns base_ns = 0;                      // what shares are of
  std::vector<LeafTime> leaves;        // total > 0, in enum order
  std::vector<VerdictShare> verdicts;  // largest first, without COMPUTE's UNSPECIFIED
  double top_probability = 0;          // of the largest verdict other than COMPUTE
  double unknown_ns = 0;
};

// `steps`: number of steps the spans are, 0 where spans are windows.
Shares compute_shares(const Ledger& ledger, size_t steps);

// 95 % interval of the mean of a series by the same bootstrap.
Interval mean_interval(const std::vector<int64_t>& values);

}  // namespace idlescope::diagnose
