// The parts of a step as every renderer shows them: one row a verdict, small ones together.
//
// In: Report.leaves. Out: rows that sum exactly to the step (or to the recorded window where
// there are no steps), largest first, compute always first and "other" last.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "proto/report.pb.h"

namespace idlescope::report {

struct StepRow {
  Verdict verdict = VERDICT_UNSPECIFIED;  // VERDICT_UNSPECIFIED: "other"
  int64_t ns = 0;
  std::vector<std::pair<Leaf, int64_t>> parts;  // largest first, all > 0
};

struct StepRows {
  int64_t total_ns = 0;
  bool window = false;  // total is the recorded window, not a step
  std::vector<StepRow> rows;
};

// At most `limit` rows; a verdict below 3 % of the total goes to "other" unless it is the
// report's verdict.
StepRows step_rows(const Report& report, size_t limit = 5);

}  // namespace idlescope::report
