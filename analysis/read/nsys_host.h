// The host side of an Nsight Systems export beside CUDA calls: NVTX ranges, operating-system
// calls, the tracer's own overhead.
//
// In: tables NVTX_EVENTS, OSRT_API, CUPTI_ACTIVITY_KIND_OVERHEAD, PROFILER_OVERHEAD. Out:
// ranges, marks, steps, loader waits and CPU clock samples of the sides that are known by now.
#pragma once

#include "analysis/read/nsys_sides.h"

namespace idlescope::read {

void read_nsys_overheads(NsysSides& sides);
void read_nsys_annotations(NsysSides& sides);
// After the CUDA calls.
void read_nsys_os_calls(NsysSides& sides);

}  // namespace idlescope::read
