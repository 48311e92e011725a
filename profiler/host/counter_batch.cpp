#include "profiler/host/counter_batch.h"

#include "profiler/emit/trace_file.h"
#include "profiler/emit/wire_writer.h"

namespace idlescope::host {

void CounterBatch::add(CounterKind kind, int64_t time_ns, int64_t value, uint32_t device_plus_1) {
  if (value < 0 || count_ == kMaxSamples) return;
  samples_[count_++] = {kind, device_plus_1, time_ns, value};
}

bool CounterBatch::write() {
  if (count_ == 0) return false;
  uint8_t packet[kMaxSamples * 40 + 16];
  emit::WireWriter out(packet, sizeof packet);
  const size_t batch = out.begin(13);
  for (size_t i = 0; i < count_; ++i) {
    const Sample& sample = samples_[i];
    const size_t message = out.begin(1);
    out.uint_field(1, static_cast<uint32_t>(sample.kind));
    out.int_field(2, sample.time_ns);
    out.int_field(3, sample.value);
    out.uint_field_if(4, sample.device_plus_1);
    out.end(message);
  }
  out.end(batch);
  count_ = 0;
  return out.ok() && emit::append_packet(out.data(), out.size());
}

}  // namespace idlescope::host
