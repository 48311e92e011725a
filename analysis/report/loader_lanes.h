// Ten batches of the loader, for drawing: who worked on which batch, when.
//
// In: Context (all processes of the recording share a clock here). Out: one TypicalStep with
// which = "loader": a lane a worker (fetch, collate, hand-over), the pin thread, next() of the
// main thread and the batches that were ready. Nothing when no loader was recorded.
#pragma once

#include "analysis/report/context.h"

namespace idlescope::report {

void add_loader_lanes(const Context& context, Report* report);

}  // namespace idlescope::report
