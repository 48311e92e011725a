#include "profiler/emit/device_packets.h"

#include "profiler/emit/wire_writer.h"

namespace idlescope::emit {
namespace {

// Field numbers of trace.proto's Packet.
constexpr uint32_t kDevice = 2;
constexpr uint32_t kContext = 3;
constexpr uint32_t kStream = 4;
constexpr uint32_t kWindowBegin = 5;
constexpr uint32_t kWindowEnd = 6;
constexpr uint32_t kClockPair = 16;
constexpr uint32_t kLoss = 17;
constexpr uint32_t kStatus = 18;

template <typename Fill>
bool write_packet(PacketSink sink, uint32_t field, Fill fill) {
  uint8_t buffer[1024];
  WireWriter out(buffer, sizeof buffer);
  const size_t mark = out.begin(field);
  fill(&out);
  out.end(mark);
  return out.ok() && sink(out.data(), out.size());
}

// Texts from outside are cut so that a packet always fits.
void bounded_string(WireWriter* out, uint32_t field, const char* text) {
  if (text == nullptr || *text == '\0') return;
  size_t size = strlen(text);
  if (size > 400) size = 400;
  while (size > 0 && size == 400 && (static_cast<uint8_t>(text[size]) & 0xc0) == 0x80) --size;
  out->bytes_field(field, text, size);
}

}  // namespace

bool write_window_begin(PacketSink sink, const WindowBeginFact& fact) {
  return write_packet(sink, kWindowBegin, [&](WireWriter* out) {
    out->uint_field(1, fact.window_id);
    out->int_field(2, fact.begin_ns);
    out->uint_field_if(3, fact.cupti_version);
    out->uint_field_if(5, fact.cuda_driver_version);
    out->uint_field(6, fact.clock);
    const size_t kinds = out->begin(7);
    for (uint32_t kind = 0; kind < 64; ++kind) {
      if ((fact.kinds >> kind) & 1) out->raw_varint(kind);
    }
    out->end(kinds);
    out->int_field_if(8, fact.attach_ns);
    bounded_string(out, 9, fact.reason);
    out->uint_field_if(10, fact.step_number);
    out->int_field_if(11, fact.stood_ns);
  });
}

bool write_window_end(PacketSink sink, const WindowEndFact& fact) {
  return write_packet(sink, kWindowEnd, [&](WireWriter* out) {
    out->uint_field(1, fact.window_id);
    out->int_field(2, fact.end_ns);
    out->int_field_if(3, fact.detach_ns);
    if (fact.stayed_attached) out->bool_field(4, true);
    out->uint_field_if(5, fact.records);
    out->uint_field_if(6, fact.calls);
    bounded_string(out, 7, fact.reason);
    out->uint_field_if(8, fact.step_number);
    out->int_field_if(9, fact.inside_step_ns);
    out->int_field_if(10, fact.plain_step_ns);
    out->uint_field_if(11, fact.inside_steps);
    out->uint_field_if(12, fact.plain_steps);
    out->int_field_if(13, fact.per_call_cost_ns);
    out->int_field_if(14, fact.detach_wait_ns);
    out->int_field_if(15, fact.stood_ns);
  });
}

bool write_device(PacketSink sink, const DeviceFact& fact) {
  return write_packet(sink, kDevice, [&](WireWriter* out) {
    out->uint_field(1, fact.device_id);
    if (fact.has_uuid) out->bytes_field(2, fact.uuid, sizeof fact.uuid);
    out->string_field(3, fact.pci_bus_id);
    out->string_field(4, fact.name);
    out->uint_field_if(5, fact.compute_major);
    out->uint_field_if(6, fact.compute_minor);
    out->uint_field_if(7, fact.sm_count);
    out->uint_field_if(8, fact.max_threads_per_sm);
    out->uint_field_if(9, fact.max_blocks_per_sm);
    out->uint_field_if(10, fact.max_registers_per_sm);
    out->uint_field_if(11, fact.max_shared_bytes_per_sm);
    out->uint_field_if(12, fact.memory_bytes);
    out->uint_field_if(13, fact.core_clock_khz);
    out->uint_field_if(14, fact.warp_size);
    out->string_field(15, fact.driver_version);
    out->uint_field_if(16, fact.cuda_driver_version);
  });
}

bool write_context(PacketSink sink, uint32_t context_id, uint32_t device_id,
                   uint32_t null_stream_id) {
  return write_packet(sink, kContext, [&](WireWriter* out) {
    out->uint_field(1, context_id);
    out->uint_field(2, device_id);
    out->uint_field_if(3, null_stream_id);
  });
}

bool write_stream(PacketSink sink, uint32_t context_id, uint32_t stream_id, uint64_t handle,
                  int64_t seen_ns) {
  return write_packet(sink, kStream, [&](WireWriter* out) {
    out->uint_field(1, context_id);
    out->uint_field(2, stream_id);
    out->uint_field_if(3, handle);
    out->int_field(6, seen_ns);
  });
}

bool write_loss(PacketSink sink, uint32_t loss_kind, uint32_t kind, uint32_t window_id,
                uint64_t count, const char* detail) {
  if (count == 0) return true;
  return write_packet(sink, kLoss, [&](WireWriter* out) {
    out->uint_field(1, loss_kind);
    out->uint_field_if(2, kind);
    out->uint_field_if(3, window_id);
    out->uint_field(4, count);
    bounded_string(out, 7, detail);
  });
}

bool write_status(PacketSink sink, uint32_t state, int64_t time_ns, const char* message_id,
                  const char* detail, int32_t code) {
  return write_packet(sink, kStatus, [&](WireWriter* out) {
    out->uint_field(1, state);
    out->int_field(2, time_ns);
    bounded_string(out, 3, message_id);
    bounded_string(out, 4, detail);
    out->int_field_if(5, code);
  });
}

bool write_cupti_clock(PacketSink sink, uint32_t window_id, int64_t monotonic_ns,
                       int64_t uncertainty_ns, int64_t cupti_ns) {
  return write_packet(sink, kClockPair, [&](WireWriter* out) {
    out->int_field(1, monotonic_ns);
    out->int_field(3, uncertainty_ns);
    out->int_field(4, cupti_ns);
    out->uint_field(5, window_id);
  });
}

}  // namespace idlescope::emit
