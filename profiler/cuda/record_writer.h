// From what CUPTI and the callbacks delivered to what the file holds, for one window at a
// time.
//
//   call log ────────┐                               ┌─► descriptors, columns (WindowBatch)
//   activity buffers ─┴─► names, streams, contexts ──┴─► Device, Context, Stream packets
//
// In: call records and filled buffers. Out: packets, counts, losses. A stream's handle (what
// calls carry) is tied to its id (what device records carry) by records of the same
// correlation id, so no CUDA call is needed for it. Drain thread.
#pragma once

#include <cstdint>

#include "profiler/cuda/activity_buffers.h"
#include "profiler/cuda/call_log.h"
#include "profiler/cuda/cupti_api.h"
#include "profiler/cuda/driver_api.h"
#include "profiler/cuda/record_decode.h"
#include "profiler/emit/descriptor_table.h"
#include "profiler/emit/name_cache.h"
#include "profiler/emit/window_batch.h"

namespace idlescope::cuda {

class RecordWriter {
 public:
  RecordWriter(emit::PacketSink sink, emit::NameSource names, const DriverApi* driver);

  // Writes what is pending of the window before.
  void start_window(uint32_t window_id, uint32_t cupti_version);

  void take_call(const CallRecord& record, uint32_t thread_id, uint32_t window_id);
  void take_buffer(const CuptiApi& api, const ActivityBuffers::Filled& buffer);

  // Writes what is pending. Cheap when nothing is.
  void flush() { batch_.flush(); }
  size_t pending() const { return batch_.pending(); }

  // Of this window so far.
  uint64_t ops() const { return ops_; }
  uint64_t calls() const { return calls_; }
  // Complete kernel and copy records whose call was seen before they were decoded.
  uint64_t joined() const { return joined_; }

  // Loss packets of this window: incomplete records, bad buffers, and what the caller knows.
  void write_losses(uint64_t dropped, uint64_t lost_calls, uint64_t lost_buffers);

  uint64_t total_ops() const { return total_ops_; }
  uint64_t total_calls() const { return total_calls_; }

 private:
  static constexpr uint32_t kJoinSlots = 1 << 16;
  static constexpr uint32_t kMaxDevices = 64;
  static constexpr uint32_t kKinds = 32;

  struct JoinSlot {
    uint64_t stream_handle;
    uint32_t correlation_id;
    uint32_t seen;
  };
  struct StreamKey {
    uint64_t handle;
    uint32_t context_id;
    uint32_t stream_id;
  };
  struct ContextKey {
    uint32_t context_id;
    uint32_t device_id;
    uint32_t null_stream_id;
    uint32_t reserved;
  };

  void take_op(const DecodedRecord& decoded);
  void note_place(const emit::GpuOp& op);
  uint32_t call_name_id(const CallRecord& record);

  emit::PacketSink sink_;
  const DriverApi* driver_;
  emit::NameCache names_;
  emit::NameSource name_source_;
  emit::WindowBatch batch_;
  emit::DescriptorTable<StreamKey> streams_{4096};
  emit::DescriptorTable<ContextKey> contexts_{1024};
  emit::GrowArray<JoinSlot> join_;
  uint32_t call_names_[2][1024];  // by domain and callback id; 0: not yet named
  bool device_written_[kMaxDevices] = {};
  uint32_t window_id_ = 0;
  uint32_t cupti_version_ = 0;
  uint64_t ops_ = 0;
  uint64_t calls_ = 0;
  uint64_t joined_ = 0;
  uint64_t total_ops_ = 0;
  uint64_t total_calls_ = 0;
  uint64_t incomplete_[kKinds] = {};
  uint64_t bad_buffers_ = 0;
  uint64_t lost_before_ = 0;
};

}  // namespace idlescope::cuda
