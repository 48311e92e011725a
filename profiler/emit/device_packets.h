// Packets of the device side that are not columns: windows, tables, losses, status. One call
// writes one packet at once; the ops and calls, of which there are thousands, are the records of
// device_record.h and go through WindowBatch.
//
// In: plain structs. Out: one encoded trace.Packet each, handed to the sink. Drain thread;
// each call encodes on the stack and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/window_batch.h"

namespace idlescope::emit {

// trace.proto enumerators used below.
enum : uint32_t {
  kKindUnknown = 0,
  kKindKernel = 1,
  kKindMemcpy = 2,
  kKindMemset = 3,
  kKindCallLaunch = 4,
  kKindCallCopy = 5,
  kKindCallSync = 6,
  kKindCallAlloc = 7,
  kKindCallModule = 8,
  kKindCallGraph = 9,
  kKindCallEvent = 10,
  kKindOverhead = 11,
  kKindGraphTrace = 12,
  kKindGraphNode = 13
};
enum : uint32_t { kClockMonotonicHost = 1, kClockCupti = 2 };
enum : uint32_t {
  kLossCuptiDropped = 1,
  kLossIncomplete = 2,
  kLossBuffer = 3,
  kLossHostLogFull = 4,
  kLossNoMemory = 7,
  kLossFile = 8
};
enum : uint32_t { kStateRecording = 1, kStateHostOnly = 2, kStateDisabled = 3 };

struct WindowBeginFact {
  uint32_t window_id;
  int64_t begin_ns;
  uint32_t cupti_version;
  uint32_t cuda_driver_version;
  uint32_t clock;
  uint64_t kinds;  // bit 1 << Kind
  int64_t attach_ns;
  const char* reason;
  uint64_t step_number;
  int64_t stood_ns;
};
bool write_window_begin(PacketSink sink, const WindowBeginFact& fact);

struct WindowEndFact {
  uint32_t window_id;
  int64_t end_ns;
  int64_t detach_ns;
  bool stayed_attached;
  uint64_t records;
  uint64_t calls;
  const char* reason;
  uint64_t step_number;
  int64_t inside_step_ns;
  int64_t plain_step_ns;
  uint32_t inside_steps;
  uint32_t plain_steps;
  int64_t per_call_cost_ns;
  int64_t detach_wait_ns;
  int64_t stood_ns;
};
bool write_window_end(PacketSink sink, const WindowEndFact& fact);

struct DeviceFact {
  uint32_t device_id;
  uint8_t uuid[16];
  bool has_uuid;
  char pci_bus_id[20];
  char name[128];
  uint32_t compute_major;
  uint32_t compute_minor;
  uint32_t sm_count;
  uint32_t max_threads_per_sm;
  uint32_t max_blocks_per_sm;
  uint32_t max_registers_per_sm;
  uint64_t max_shared_bytes_per_sm;
  uint64_t memory_bytes;
  uint32_t core_clock_khz;
  uint32_t warp_size;
  char driver_version[32];
  uint32_t cuda_driver_version;
};
bool write_device(PacketSink sink, const DeviceFact& fact);

bool write_context(PacketSink sink, uint32_t context_id, uint32_t device_id,
                   uint32_t null_stream_id);
bool write_stream(PacketSink sink, uint32_t context_id, uint32_t stream_id, uint64_t handle,
                  int64_t seen_ns);

// `detail` is one English sentence. `count` 0 writes nothing and is success.
bool write_loss(PacketSink sink, uint32_t loss_kind, uint32_t kind, uint32_t window_id,
                uint64_t count, const char* detail);

bool write_status(PacketSink sink, uint32_t state, int64_t time_ns, const char* message_id,
                  const char* detail, int32_t code);

// One clock pair of a window whose records are on CUPTI's own clock.
bool write_cupti_clock(PacketSink sink, uint32_t window_id, int64_t monotonic_ns,
                       int64_t uncertainty_ns, int64_t cupti_ns);

}  // namespace idlescope::emit
