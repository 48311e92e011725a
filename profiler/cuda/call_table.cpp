#include "profiler/cuda/call_table.h"

#include <cstdio>
#include <cstring>

#include "profiler/emit/device_record.h"

namespace idlescope::cuda {
namespace {

using namespace emit;  // NOLINT: enumerators of trace.proto

constexpr uint8_t LAUNCH = kCallLaunch;
constexpr uint8_t MEMCPY = kCallMemcpy;
constexpr uint8_t MEMSET = kCallMemset;
constexpr uint8_t STREAM_SYNC = kCallStreamSync;
constexpr uint8_t DEVICE_SYNC = kCallDeviceSync;
constexpr uint8_t EVENT_SYNC = kCallEventSync;
constexpr uint8_t EVENT_RECORD = kCallEventRecord;
constexpr uint8_t STREAM_WAIT_EVENT = kCallStreamWaitEvent;
constexpr uint8_t ALLOC_DEVICE = kCallAllocDevice;
constexpr uint8_t FREE_DEVICE = kCallFreeDevice;
constexpr uint8_t ALLOC_PINNED = kCallAllocPinned;
constexpr uint8_t FREE_PINNED = kCallFreePinned;
constexpr uint8_t MODULE_LOAD = kCallModuleLoad;
constexpr uint8_t GRAPH_INSTANTIATE = kCallGraphInstantiate;
constexpr uint8_t GRAPH_LAUNCH = kCallGraphLaunch;
constexpr uint8_t CAPTURE_BEGIN = kCallCaptureBegin;
constexpr uint8_t CAPTURE_END = kCallCaptureEnd;
constexpr uint8_t OTHER = kCallOther;

// Position of a function in the list, which is also its case in decode_call.
enum Index : uint16_t {
#define IDLESCOPE_CUDA_CALL(domain, name, call_class) k_##domain##_##name,
#define IDLESCOPE_CUDA_CALL_VOID(domain, name, call_class) k_##domain##_##name,
#include "profiler/cuda/cuda_calls.def"
#undef IDLESCOPE_CUDA_CALL
#undef IDLESCOPE_CUDA_CALL_VOID
  kCount
};

constexpr CallFunction kFunctions[] = {
#define IDLESCOPE_CUDA_CALL(domain, name, call_class) \
  {CUPTI_CB_DOMAIN_##domain##_API, CUPTI_##domain##_TRACE_CBID_##name, call_class, #name},
#define IDLESCOPE_CUDA_CALL_VOID IDLESCOPE_CUDA_CALL
#include "profiler/cuda/cuda_calls.def"
#undef IDLESCOPE_CUDA_CALL
#undef IDLESCOPE_CUDA_CALL_VOID
};
static_assert(sizeof(kFunctions) / sizeof(kFunctions[0]) == kCount);

constexpr uint32_t kMaxId = 1024;
static_assert(CUPTI_RUNTIME_TRACE_CBID_SIZE <= kMaxId && CUPTI_DRIVER_TRACE_CBID_SIZE <= kMaxId);

// Callback id to index + 1, for the two domains.
struct IdMap {
  uint16_t runtime[kMaxId];
  uint16_t driver[kMaxId];
};
constexpr IdMap make_id_map() {
  IdMap map = {};
  for (uint16_t i = 0; i < kCount; ++i) {
    const CallFunction& function = kFunctions[i];
    auto* ids = function.domain == CUPTI_CB_DOMAIN_RUNTIME_API ? map.runtime : map.driver;
    ids[function.id] = static_cast<uint16_t>(i + 1);
  }
  return map;
}
constexpr IdMap kIds = make_id_map();

template <typename Pointer>
uint64_t handle(Pointer pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

uint8_t copy_kind_of(int cuda_memcpy_kind) {
  switch (cuda_memcpy_kind) {
    case 0:
      return kCopyH2H;
    case 1:
      return kCopyH2D;
    case 2:
      return kCopyD2H;
    case 3:
      return kCopyD2D;
    default:
      return kCopyUnknown;  // cudaMemcpyDefault
  }
}

template <typename Params>
void decode_stream(const Params& p, CallRecord* record) {
  if constexpr (requires { handle(p.stream); }) {
    record->stream_handle = handle(p.stream);
  } else if constexpr (requires { handle(p.hStream); }) {
    record->stream_handle = handle(p.hStream);
  } else if constexpr (requires { handle(p.config->stream); }) {
    if (p.config != nullptr) record->stream_handle = handle(p.config->stream);
  } else if constexpr (requires { handle(p.config->hStream); }) {
    if (p.config != nullptr) record->stream_handle = handle(p.config->hStream);
  }
}

// The parameter names of the driver and runtime headers tell what a number means.
template <typename Params>
void decode_bytes(const Params& p, CallRecord* record) {
  if constexpr (requires { p.pCopy->WidthInBytes* p.pCopy->Height* p.pCopy->Depth; }) {
    if (p.pCopy != nullptr) {
      record->bytes = uint64_t{p.pCopy->WidthInBytes} * p.pCopy->Height * p.pCopy->Depth;
    }
  } else if constexpr (requires { p.pCopy->WidthInBytes* p.pCopy->Height; }) {
    if (p.pCopy != nullptr) record->bytes = uint64_t{p.pCopy->WidthInBytes} * p.pCopy->Height;
  } else if constexpr (requires { p.p->extent.width; }) {
    // Exact for linear memory; for arrays the width counts elements.
    if (p.p != nullptr) {
      record->bytes = uint64_t{p.p->extent.width} * p.p->extent.height * p.p->extent.depth;
    }
  } else if constexpr (requires { p.extent.width; }) {
    record->bytes = uint64_t{p.extent.width} * p.extent.height * p.extent.depth;
  } else if constexpr (requires { p.ui, p.N; }) {
    record->bytes = uint64_t{p.N} * 4;
  } else if constexpr (requires { p.us, p.N; }) {
    record->bytes = uint64_t{p.N} * 2;
  } else if constexpr (requires { p.uc, p.N; }) {
    record->bytes = p.N;
  } else if constexpr (requires { p.ui, p.Width* p.Height; }) {
    record->bytes = uint64_t{p.Width} * p.Height * 4;
  } else if constexpr (requires { p.us, p.Width* p.Height; }) {
    record->bytes = uint64_t{p.Width} * p.Height * 2;
  } else if constexpr (requires { p.uc, p.Width* p.Height; }) {
    record->bytes = uint64_t{p.Width} * p.Height;
  } else if constexpr (requires { p.WidthInBytes* p.Height; }) {
    record->bytes = uint64_t{p.WidthInBytes} * p.Height;
  } else if constexpr (requires { p.width* p.height; }) {
    record->bytes = uint64_t{p.width} * p.height;
  } else if constexpr (requires { p.sizes[0] + p.count; }) {
    for (uint64_t i = 0; p.sizes != nullptr && i < p.count && i < 4096; ++i) {
      record->bytes += p.sizes[i];
    }
  } else if constexpr (requires { uint64_t{p.count}; }) {
    record->bytes = p.count;
  } else if constexpr (requires { uint64_t{p.ByteCount}; }) {
    record->bytes = p.ByteCount;
  } else if constexpr (requires { uint64_t{p.bytesize}; }) {
    record->bytes = p.bytesize;
  } else if constexpr (requires { uint64_t{p.bytesize_v1}; }) {
    record->bytes = p.bytesize_v1;
  } else if constexpr (requires { uint64_t{p.size}; }) {
    record->bytes = p.size;
  }
}

template <typename Params>
void decode_copy_kind(const Params& p, CallRecord* record) {
  if constexpr (requires { static_cast<int>(p.kind); }) {
    record->copy_kind = copy_kind_of(static_cast<int>(p.kind));
  } else if constexpr (requires { static_cast<int>(p.p->kind); }) {
    if (p.p != nullptr) record->copy_kind = copy_kind_of(static_cast<int>(p.p->kind));
  } else if constexpr (requires { p.srcHost; }) {
    record->copy_kind = kCopyH2D;
  } else if constexpr (requires { p.dstHost; }) {
    record->copy_kind = kCopyD2H;
  } else if constexpr (
      requires { p.srcContext, p.dstContext; } ||
      requires { p.srcDevice + p.dstDevice, p.src, p.dst; }) {
    record->copy_kind = kCopyP2P;  // cuMemcpyPeer, cudaMemcpyPeer
  } else if constexpr (
      requires { p.srcDevice, p.dstDevice; } || requires { p.srcDevice, p.dstArray; } ||
      requires { p.srcArray, p.dstDevice; } || requires { p.srcArray, p.dstArray; }) {
    record->copy_kind = kCopyD2D;
  }
}

template <typename Params>
void decode_object(const Params& p, bool failed, CallRecord* record) {
  if constexpr (requires { handle(p.event); }) {
    record->object = handle(p.event);
  } else if constexpr (requires { handle(p.hEvent); }) {
    record->object = handle(p.hEvent);
  } else if constexpr (requires { handle(p.graphExec); }) {
    record->object = handle(p.graphExec);
  } else if constexpr (requires { handle(p.hGraphExec); }) {
    record->object = handle(p.hGraphExec);
  } else if constexpr (requires { CUgraphExec{p.hGraph}; }) {
    record->object = handle(p.hGraph);  // cuGraphLaunch, cuGraphUpload
  } else if constexpr (requires { handle(*p.pGraphExec); }) {
    if (!failed && p.pGraphExec != nullptr) record->object = handle(*p.pGraphExec);
  } else if constexpr (requires { handle(*p.phGraphExec); }) {
    if (!failed && p.phGraphExec != nullptr) record->object = handle(*p.phGraphExec);
  }
}

template <typename Params>
void decode(const void* params, bool failed, CallRecord* record) {
  if (params == nullptr) return;
  const Params& p = *static_cast<const Params*>(params);
  decode_stream(p, record);
  decode_object(p, failed, record);
  switch (record->call_class) {
    case kCallMemcpy:
      decode_copy_kind(p, record);
      [[fallthrough]];
    case kCallMemset:
    case kCallAllocDevice:
    case kCallAllocPinned:
      decode_bytes(p, record);
      break;
    default:
      break;
  }
}

}  // namespace

const CallFunction* call_functions(uint32_t* count) {
  *count = kCount;
  return kFunctions;
}

const CallFunction* find_call(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (id >= kMaxId) return nullptr;
  uint16_t index = 0;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    index = kIds.runtime[id];
  } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    index = kIds.driver[id];
  }
  return index == 0 ? nullptr : &kFunctions[index - 1];
}

void decode_call(const CallFunction& function, const void* params, bool failed,
                 CallRecord* record) {
  record->stream_handle = 0;
  record->bytes = 0;
  record->object = 0;
  record->copy_kind = kCopyUnknown;
  record->call_class = function.call_class;
  switch (static_cast<Index>(&function - kFunctions)) {
#define IDLESCOPE_CUDA_CALL(domain, name, call_class) \
  case k_##domain##_##name:                           \
    return decode<name##_params>(params, failed, record);
#define IDLESCOPE_CUDA_CALL_VOID(domain, name, call_class) \
  case k_##domain##_##name:                                \
    return;
#include "profiler/cuda/cuda_calls.def"
#undef IDLESCOPE_CUDA_CALL
#undef IDLESCOPE_CUDA_CALL_VOID
    case kCount:
      return;
  }
}

void call_name(const CallFunction& function, char* out, uint32_t size) {
  snprintf(out, size, "%s", function.name);
  if (function.domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  char* version = nullptr;
  for (char* at = strstr(out, "_v"); at != nullptr; at = strstr(at + 1, "_v")) version = at;
  if (version != nullptr && strspn(version + 2, "0123456789") == strlen(version + 2)) {
    *version = '\0';
  }
}

}  // namespace idlescope::cuda
