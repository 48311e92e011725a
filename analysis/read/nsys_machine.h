// The machine of an Nsight Systems export: host, GPUs, process and thread names, wall clock.
//
// In: the TARGET_INFO_* tables, PROCESSES, ThreadNames, the version. Out: headers and devices of
// the sides that are known by now; what is not there stays unknown.
#pragma once

#include "analysis/read/nsys_sides.h"

namespace idlescope::read {

void describe_nsys_machine(NsysSides& sides);

}  // namespace idlescope::read
