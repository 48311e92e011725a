#include "analysis/read/nsys_enums.h"

namespace idlescope::read {

// ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND, equal in all versions seen.
trace::CopyKind nsys_copy_kind(int64_t value) {
  switch (value) {
    case 1:
    case 3:
    case 11:
      return trace::COPY_H2D;
    case 2:
    case 4:
    case 12:
      return trace::COPY_D2H;
    case 5:
    case 6:
    case 7:
    case 8:
    case 13:
      return trace::COPY_D2D;
    case 9:
      return trace::COPY_H2H;
    case 10:
      return trace::COPY_P2P;
    default:
      return trace::COPY_UNKNOWN;
  }
}

trace::MemoryKind nsys_memory_kind(int64_t value) {
  switch (value) {
    case 0:
      return trace::MEMORY_PAGEABLE;
    case 1:
      return trace::MEMORY_PINNED;
    case 2:
    case 5:
      return trace::MEMORY_DEVICE;
    case 3:
      return trace::MEMORY_ARRAY;
    case 4:
    case 6:
      return trace::MEMORY_MANAGED;
    default:
      return trace::MEMORY_UNKNOWN;
  }
}

trace::OverheadKind nsys_overhead_kind(int64_t value) {
  switch (value) {
    case 2:
      return trace::OVERHEAD_DRIVER_COMPILER;
    case 3:
      return trace::OVERHEAD_BUFFER_FLUSH;
    case 4:
      return trace::OVERHEAD_INSTRUMENTATION;
    case 5:
      return trace::OVERHEAD_RESOURCE;
    case 6:
      return trace::OVERHEAD_MODULE_LOADING;
    case 7:
      return trace::OVERHEAD_LAZY_FUNCTION_LOADING;
    case 8:
      return trace::OVERHEAD_COMMAND_BUFFER_FULL;
    default:
      return trace::OVERHEAD_UNKNOWN;
  }
}

}  // namespace idlescope::read
