// The enumerations of Nsight Systems exports as the contract's.
//
// In: values of the columns copyKind, srcKind and dstKind, overheadType. Out: trace.proto
// enums; unknown values are UNKNOWN. The tables ENUM_* that exports carry since 2022 say the
// same in all versions seen.
#pragma once

#include <cstdint>

#include "proto/trace.pb.h"

namespace idlescope::read {

trace::CopyKind nsys_copy_kind(int64_t value);
trace::MemoryKind nsys_memory_kind(int64_t value);
trace::OverheadKind nsys_overhead_kind(int64_t value);

}  // namespace idlescope::read
