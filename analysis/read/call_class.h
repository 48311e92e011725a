// What a CUDA or HIP API function does, by its name.
//
// In: "cudaMemcpyAsync", "cuLaunchKernelEx", "hipDeviceSynchronize", with or without version
// suffixes (_v2, _v10000, _ptsz). Out: its CallClass, the copy direction where the name tells,
// and whether it is driver API. Used by importers; our own recorder knows the callback id.
#pragma once

#include <string_view>

#include "proto/trace.pb.h"

namespace idlescope::read {

struct CallName {
  trace::CallClass call_class = trace::CALL_UNKNOWN;
  trace::CopyKind copy_kind = trace::COPY_UNKNOWN;
  bool driver = false;
};

CallName classify_call(std::string_view name);

// "Memcpy HtoD (Pageable -> Device)", "Memcpy PtoP (Device -> Device)", "Memset (Device)",
// "CopyDeviceToHost": as Kineto, nsys and ROCm name device copies.
struct CopyName {
  bool is_copy = false;
  bool is_memset = false;
  trace::CopyKind copy_kind = trace::COPY_UNKNOWN;
  trace::MemoryKind src_kind = trace::MEMORY_UNKNOWN;
  trace::MemoryKind dst_kind = trace::MEMORY_UNKNOWN;
};

CopyName parse_copy_name(std::string_view name);

}  // namespace idlescope::read
