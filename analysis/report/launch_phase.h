// Which part of the launches an optimizer makes: decides between "fuse the optimizer" and
// "use a graph" for a job that waits for launches.
#pragma once

#include <cstdint>

#include "analysis/read/recording.h"

namespace idlescope::report {

// Share of outermost launch calls made inside optimizer ranges of their thread (zero_grad
// counts too); 0 when there are no launches or no such ranges.
double launch_optimizer_share(const read::Process& process);

}  // namespace idlescope::report
