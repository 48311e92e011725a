#include "profiler/cuda/record_decode.h"

#include <cstddef>
#include <cstring>

#include "profiler/emit/device_packets.h"

namespace idlescope::cuda {
namespace {

using namespace emit;  // NOLINT: enumerators of trace.proto

// CUDA 12 writes CUpti_ActivityKernel9 (12.0: Kernel8), Memcpy5 or 6, Memset4, GraphTrace 1 or
// 2; CUDA 13.0 Kernel10, Memcpy6, Memset4, GraphTrace2. The fields used here have not moved,
// so one reader serves all; the assertions hold that for the structs that the headers have.
#define IDLESCOPE_SAME(newer, older, field) \
  static_assert(offsetof(newer, field) == offsetof(older, field))
#define IDLESCOPE_SAME_KERNEL(older)                                  \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, start);               \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, end);                 \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, deviceId);            \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, contextId);           \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, streamId);            \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, gridX);               \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, blockX);              \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, registersPerThread);  \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, staticSharedMemory);  \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, dynamicSharedMemory); \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, correlationId);       \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, name);                \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, graphNodeId);         \
  IDLESCOPE_SAME(CUpti_ActivityKernel10, older, graphId)
IDLESCOPE_SAME_KERNEL(CUpti_ActivityKernel8);
IDLESCOPE_SAME_KERNEL(CUpti_ActivityKernel9);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, copyKind);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, bytes);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, start);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, end);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, streamId);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, correlationId);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, graphNodeId);
IDLESCOPE_SAME(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, graphId);
IDLESCOPE_SAME(CUpti_ActivityGraphTrace2, CUpti_ActivityGraphTrace, start);
IDLESCOPE_SAME(CUpti_ActivityGraphTrace2, CUpti_ActivityGraphTrace, graphId);
IDLESCOPE_SAME(CUpti_ActivityGraphTrace2, CUpti_ActivityGraphTrace, streamId);
IDLESCOPE_SAME(CUpti_ActivityOverhead3, CUpti_ActivityOverhead, start);
IDLESCOPE_SAME(CUpti_ActivityOverhead3, CUpti_ActivityOverhead, end);
#undef IDLESCOPE_SAME_KERNEL
#undef IDLESCOPE_SAME

constexpr uint32_t kCuptiWithOverheadCorrelation = 26;  // CUDA 12.8, CUpti_ActivityOverhead3

uint8_t memory_kind(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return kMemoryPageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return kMemoryPinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
      return kMemoryDevice;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return kMemoryArray;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return kMemoryManaged;
    default:
      return kMemoryUnknown;
  }
}

uint8_t copy_kind(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return kCopyH2D;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return kCopyD2H;
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return kCopyD2D;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return kCopyH2H;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return kCopyP2P;
    default:
      return kCopyUnknown;
  }
}

uint32_t overhead_kind(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return 1;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return 2;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return 3;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return 4;
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
      return 8;
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
      return 5;
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
      return 6;
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
      return 7;
    default:
      return 0;
  }
}

Decoded set_times(uint64_t start, uint64_t end, GpuOp* op) {
  if (start == 0 || end == 0) return Decoded::kIncomplete;
  op->begin_ns = static_cast<int64_t>(start);
  // The two stamps are converted to the host clock one by one; a zero-length op can come out
  // a few ns negative.
  op->end_ns = static_cast<int64_t>(end < start ? start : end);
  return Decoded::kOp;
}

// Copies the record: buffers are byte arrays, and an older CUPTI writes a shorter struct.
template <typename Record>
Record prefix(const CUpti_Activity* record, size_t bytes) {
  Record copy;
  memset(static_cast<void*>(&copy), 0, sizeof copy);
  memcpy(static_cast<void*>(&copy), record, bytes < sizeof copy ? bytes : sizeof copy);
  return copy;
}

// What all kinds of ops have under the same names: where it ran and who started it.
template <typename Record>
void place(const Record& record, uint8_t kind, GpuOp* op) {
  op->correlation_id = record.correlationId;
  op->key.kind = kind;
  op->key.device_id = record.deviceId;
  op->key.context_id = record.contextId;
  op->key.stream_id = record.streamId;
  op->key.graph_id = record.graphId;
}

Decoded decode_kernel(const CUpti_Activity* record, DecodedRecord* out) {
  // Up to and with graphId, which all supported versions have.
  const auto k = prefix<CUpti_ActivityKernel10>(
      record, offsetof(CUpti_ActivityKernel10, graphId) + sizeof(uint32_t));
  out->trace_kind = kKindKernel;
  GpuOp& op = out->op;
  place(k, kOpKernel, &op);
  op.key.grid[0] = static_cast<uint32_t>(k.gridX);
  op.key.grid[1] = static_cast<uint32_t>(k.gridY);
  op.key.grid[2] = static_cast<uint32_t>(k.gridZ);
  op.key.block[0] = static_cast<uint32_t>(k.blockX);
  op.key.block[1] = static_cast<uint32_t>(k.blockY);
  op.key.block[2] = static_cast<uint32_t>(k.blockZ);
  op.key.registers_per_thread = k.registersPerThread;
  op.key.static_shared_bytes = static_cast<uint32_t>(k.staticSharedMemory);
  op.key.dynamic_shared_bytes = static_cast<uint32_t>(k.dynamicSharedMemory);
  op.key.graph_node_id = k.graphNodeId;
  out->name = k.name;
  return set_times(k.start, k.end, &op);
}

Decoded decode_memcpy(const CUpti_Activity* record, DecodedRecord* out) {
  const auto m = prefix<CUpti_ActivityMemcpy6>(
      record, offsetof(CUpti_ActivityMemcpy6, graphId) + sizeof(uint32_t));
  out->trace_kind = kKindMemcpy;
  GpuOp& op = out->op;
  place(m, kOpMemcpy, &op);
  op.key.copy_kind = copy_kind(m.copyKind);
  op.key.src_kind = memory_kind(m.srcKind);
  op.key.dst_kind = memory_kind(m.dstKind);
  op.key.bytes = m.bytes;
  op.key.is_async = (m.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0;
  op.key.graph_node_id = m.graphNodeId;
  return set_times(m.start, m.end, &op);
}

Decoded decode_peer_copy(const CUpti_Activity* record, DecodedRecord* out) {
  const auto m = prefix<CUpti_ActivityMemcpyPtoP4>(
      record, offsetof(CUpti_ActivityMemcpyPtoP4, graphId) + sizeof(uint32_t));
  out->trace_kind = kKindMemcpy;
  GpuOp& op = out->op;
  place(m, kOpMemcpy, &op);
  op.key.copy_kind = kCopyP2P;
  op.key.src_kind = memory_kind(m.srcKind);
  op.key.dst_kind = memory_kind(m.dstKind);
  op.key.bytes = m.bytes;
  op.key.is_async = (m.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0;
  op.key.peer_device_id_plus_1 = (m.srcDeviceId == m.deviceId ? m.dstDeviceId : m.srcDeviceId) + 1;
  op.key.graph_node_id = m.graphNodeId;
  return set_times(m.start, m.end, &op);
}

Decoded decode_memset(const CUpti_Activity* record, DecodedRecord* out) {
  const auto m = prefix<CUpti_ActivityMemset4>(
      record, offsetof(CUpti_ActivityMemset4, graphId) + sizeof(uint32_t));
  out->trace_kind = kKindMemset;
  GpuOp& op = out->op;
  place(m, kOpMemset, &op);
  op.key.bytes = m.bytes;
  op.key.dst_kind = memory_kind(m.memoryKind);
  op.key.is_async = (m.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0;
  op.key.graph_node_id = m.graphNodeId;
  return set_times(m.start, m.end, &op);
}

Decoded decode_graph(const CUpti_Activity* record, DecodedRecord* out) {
  const auto g = prefix<CUpti_ActivityGraphTrace2>(
      record, offsetof(CUpti_ActivityGraphTrace2, streamId) + sizeof(uint32_t));
  out->trace_kind = kKindGraphTrace;
  GpuOp& op = out->op;
  place(g, kOpGraph, &op);
  return set_times(g.start, g.end, &op);
}

Decoded decode_overhead(const CUpti_Activity* record, uint32_t cupti_version, DecodedRecord* out) {
  const bool with_correlation = cupti_version >= kCuptiWithOverheadCorrelation;
  const auto o = prefix<CUpti_ActivityOverhead3>(
      record, with_correlation ? offsetof(CUpti_ActivityOverhead3, correlationId) + sizeof(uint32_t)
                               : offsetof(CUpti_ActivityOverhead3, correlationId));
  out->trace_kind = kKindOverhead;
  if (o.start == 0 || o.end == 0) return Decoded::kIncomplete;
  out->overhead.kind = overhead_kind(static_cast<uint32_t>(o.overheadKind));
  // With cuptiSetThreadIdType(SYSTEM) this is the kernel's thread id.
  out->overhead.thread_id =
      o.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ? o.objectId.pt.threadId : 0;
  out->overhead.begin_ns = static_cast<int64_t>(o.start);
  out->overhead.end_ns = static_cast<int64_t>(o.end < o.start ? o.start : o.end);
  out->overhead.correlation_id = o.correlationId;
  return Decoded::kOverhead;
}

}  // namespace

Decoded decode_record(const CUpti_Activity* record, uint32_t cupti_version, DecodedRecord* out) {
  memset(static_cast<void*>(out), 0, sizeof *out);
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      return decode_kernel(record, out);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return decode_memcpy(record, out);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return decode_peer_copy(record, out);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return decode_memset(record, out);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return decode_graph(record, out);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return decode_overhead(record, cupti_version, out);
    default:
      return Decoded::kOther;
  }
}

}  // namespace idlescope::cuda
