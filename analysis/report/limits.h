// What the verdict is not, what it rests on, and what this recording cannot answer.
//
// In: Context. Out: Report.not_it (the largest host-side numbers that cost no device time),
// limits (always at least one line), abstentions, anomalies.
#pragma once

#include "analysis/report/context.h"

namespace idlescope::report {

void write_not_it(const Context& context, Report* report);
void write_limits(const Context& context, Report* report);

}  // namespace idlescope::report
