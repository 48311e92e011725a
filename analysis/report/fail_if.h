// Gates for scripts: `report --fail-if 'DATA>10%'`.
//
// In: a condition NAME>PERCENT (or >=, <, <=) where NAME is a verdict (DATA, COMPUTE …), BUSY
// (device busy share of the step), UNKNOWN, or STEP with a time ("STEP>250ms"). Out: whether
// the report meets it, with the value found. A report that cannot tell fails no gate on a
// verdict's share by itself: it is an error of its own, so that a broken recording does not
// pass a gate silently.
#pragma once

#include <string>
#include <string_view>

#include "analysis/read/fault.h"
#include "proto/report.pb.h"

namespace idlescope::report {

struct Condition {
  enum class Relation { kAbove, kAtLeast, kBelow, kAtMost };
  std::string name;   // as written, upper case
  Verdict verdict{};  // VERDICT_UNSPECIFIED: BUSY, UNKNOWN or STEP
  Relation relation{};
  double limit = 0;  // share, or ns for STEP
};

// The fault says what a condition looks like.
read::Expected<Condition> parse_condition(std::string_view text);

struct GateResult {
  bool met = false;  // the gate fails: exit code 3
  double value = 0;  // found
  std::string text;  // "DATA is 38 % of the step, above 10 %"
};

// A fault when the report has no number to compare.
read::Expected<GateResult> check(const Condition& condition, const Report& report);

}  // namespace idlescope::report
