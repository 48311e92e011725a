// Two recordings of the same job, before and after a change.
//
// In: reports of the old and of the new runs (several of each: repetitions decide). Out: step
// times with an interval, whether the difference is real, leaf by leaf, verdict then and now,
// and the forecast that the old report made beside what was measured.
#pragma once

#include <string>
#include <vector>

#include "analysis/report/text.h"
#include "proto/report.pb.h"

namespace idlescope::report {

struct Comparison {
  struct Side {
    double step_ns = 0;  // mean over runs, unprofiled where known
    double low_ns = 0;   // 95 % interval; low = high: none
    double high_ns = 0;
    size_t runs = 0;
    uint64_t steps = 0;
    Verdict verdict{};  // of the first run
    Certainty certainty{};
    bool verdicts_differ = false;  // among the runs of this side
  };
  enum class Outcome { kFaster, kSlower, kSame, kUnclear, kNotComparable };
  struct Row {
    Verdict verdict{};
    double old_ns = 0;
    double new_ns = 0;
  };
  Side before;
  Side after;
  Outcome outcome{};
  double speedup = 0;  // before / after; 0: unknown
  double speedup_low = 0;
  double speedup_high = 0;
  std::vector<Row> rows;  // by the largest change; compute first
  // The first fix of the old report, if it had a forecast.
  double forecast_step_ns = 0;
  double forecast_low = 0;  // of the speed-up
  double forecast_high = 0;
  std::string forecast_fix;
};

// Both lists have at least one report.
Comparison compare(const std::vector<Report>& before, const std::vector<Report>& after);

std::string render_comparison(const Comparison& comparison, const TextOptions& options);

}  // namespace idlescope::report
