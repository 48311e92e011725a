// Collects the device ops and host calls of a window and writes them as packets.
//
// In: decoded records. Out: one zstd packet per flush, holding the new descriptors, a
// GpuOpBatch, a HostCallBatch and the overheads (trace.proto, "device ops, host calls").
// Drain thread only; memory is bounded by kMaxElements per batch.
#pragma once

#include <cstdint>

#include "profiler/emit/descriptor_table.h"
#include "profiler/emit/device_record.h"
#include "profiler/emit/grow_array.h"

struct ZSTD_CCtx_s;

namespace idlescope::emit {

// Where encoded packets go; emit::append_packet in the product, a buffer in tests.
using PacketSink = bool (*)(const uint8_t* body, size_t size);

// The columns of a batch: what GpuOpBatch and HostCallBatch share.
struct BatchColumns {
  GrowArray<uint32_t> descriptor;
  GrowArray<int64_t> begin_ns;
  GrowArray<int64_t> end_ns;
  GrowArray<uint32_t> correlation;
  GrowArray<int32_t> result;  // host calls only
  bool any_result = false;

  size_t size() const { return descriptor.size(); }
  void clear();
  bool add(uint32_t descriptor_id, int64_t begin, int64_t end, uint32_t correlation_id,
           int32_t call_result);
};

class WindowBatch {
 public:
  static constexpr size_t kMaxElements = 32768;

  explicit WindowBatch(PacketSink sink) : sink_(sink) {}
  ~WindowBatch();
  WindowBatch(const WindowBatch&) = delete;
  WindowBatch& operator=(const WindowBatch&) = delete;

  // Flushes what belongs to the window before.
  void start_window(uint32_t window_id);

  // Adding may flush. False: lost (no memory); counted in lost().
  bool add_op(const GpuOp& op);
  bool add_call(const HostCall& call);
  bool add_overhead(const OverheadSpan& span);

  // Writes everything collected. False: the file did not take it; the records are counted
  // as lost.
  bool flush();

  uint64_t ops_written() const { return ops_written_; }
  uint64_t calls_written() const { return calls_written_; }
  uint64_t lost() const { return lost_; }
  uint64_t packet_bytes() const { return packet_bytes_; }
  size_t pending() const { return ops_.size() + calls_.size() + overheads_.size(); }

 private:
  bool encode_and_write();
  void clear_pending();

  PacketSink sink_;
  uint32_t window_id_ = 0;
  DescriptorTable<GpuOpKey> op_keys_;
  DescriptorTable<HostCallKey> call_keys_;
  BatchColumns ops_;
  BatchColumns calls_;
  GrowArray<OverheadSpan> overheads_;
  GrowArray<uint8_t> plain_;
  GrowArray<uint8_t> packed_;
  ZSTD_CCtx_s* zstd_ = nullptr;
  uint64_t ops_written_ = 0;
  uint64_t calls_written_ = 0;
  uint64_t lost_ = 0;
  uint64_t packet_bytes_ = 0;
};

}  // namespace idlescope::emit
