// Advice: what to change, in the user's words and at the user's line.
//
// In: Context. Out: Report.fixes in the order to try them, each with the share of a step it
// could remove at most (not a forecast), and notes such as "None worth your time.". No fix is
// offered whose cost is below 2 % of the step. Which advice a verdict may carry follows the
// accept and forbid lists of the scenarios (docs/report.md).
#pragma once

#include "analysis/report/context.h"

namespace idlescope::report {

void write_fixes(const Context& context, Report* report);

// Collects fixes; drops those not worth it.
class Advice {
 public:
  Advice(const Context& context, Report* report) : context_(context), report_(report) {}

  // `cost_ns` per step (or in the window): device time that has the fix's cause; at or above
  // kWorthwhile, else nullptr is returned and nothing added. `ceiling_ns`: what the fix can
  // remove at most, where that is more (time that is charged to waits in front of the cause).
  Fix* offer(std::string_view id, Verdict addresses, Text text, double cost_ns,
             double ceiling_ns = 0);
  const Context& context() const { return context_; }
  const Report& report() const { return *report_; }

 private:
  const Context& context_;
  Report* report_;
};

void data_fixes(Advice* advice);                     // DATA and epoch restarts
void device_fixes(Verdict verdict, Advice* advice);  // all others

}  // namespace idlescope::report
