// Plain records of the device timeline, between decoding (profiler/cuda) and encoding
// (WindowBatch). Enum values are trace.proto's; what belongs to a descriptor is a struct of
// its own, because it is what thousands of ops have in common. Facts that come once a window or
// device: device_packets.h.
#pragma once

#include <cstdint>

namespace idlescope::emit {

// Enumerators of trace.proto that the recorder writes; a test compares them with the
// generated header.
enum : uint8_t { kOpKernel = 1, kOpMemcpy = 2, kOpMemset = 3, kOpGraph = 4 };
enum : uint8_t {
  kCopyUnknown = 0,
  kCopyH2D = 1,
  kCopyD2H = 2,
  kCopyD2D = 3,
  kCopyP2P = 4,
  kCopyH2H = 5
};
enum : uint8_t {
  kMemoryUnknown = 0,
  kMemoryPageable = 1,
  kMemoryPinned = 2,
  kMemoryDevice = 3,
  kMemoryArray = 4,
  kMemoryManaged = 5
};
enum : uint8_t { kDomainRuntime = 1, kDomainDriver = 2 };
enum : uint8_t {
  kCallLaunch = 1,
  kCallMemcpy = 2,
  kCallMemset = 3,
  kCallStreamSync = 4,
  kCallDeviceSync = 5,
  kCallEventSync = 6,
  kCallEventRecord = 7,
  kCallStreamWaitEvent = 8,
  kCallAllocDevice = 9,
  kCallFreeDevice = 10,
  kCallAllocPinned = 11,
  kCallFreePinned = 12,
  kCallModuleLoad = 13,
  kCallGraphInstantiate = 14,
  kCallGraphLaunch = 15,
  kCallCaptureBegin = 16,
  kCallCaptureEnd = 17,
  kCallQuery = 18,
  kCallOther = 19
};

// Compared bytewise: keep it free of padding.
struct GpuOpKey {
  uint64_t bytes;
  uint64_t graph_node_id;
  uint32_t name_id;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t static_shared_bytes;
  uint32_t dynamic_shared_bytes;
  uint32_t peer_device_id_plus_1;
  uint32_t graph_id;
  uint16_t registers_per_thread;
  uint8_t kind;
  uint8_t copy_kind;
  uint8_t src_kind;
  uint8_t dst_kind;
  uint8_t is_async;
  uint8_t reserved;
};
static_assert(sizeof(GpuOpKey) == 80);

struct GpuOp {
  GpuOpKey key;
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t correlation_id;
};

// Compared bytewise: keep it free of padding.
struct HostCallKey {
  uint64_t stream_handle;
  uint64_t bytes;
  uint64_t object;
  uint32_t name_id;
  uint32_t thread_id;
  uint32_t context_id;
  uint8_t call_class;
  uint8_t domain;
  uint8_t copy_kind;
  uint8_t reserved;
};
static_assert(sizeof(HostCallKey) == 40);

struct HostCall {
  HostCallKey key;
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t correlation_id;
  int32_t result;
};

struct OverheadSpan {
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t kind;  // trace.proto OverheadKind
  uint32_t thread_id;
  uint32_t correlation_id;
};

}  // namespace idlescope::emit
