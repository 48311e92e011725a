#include "analysis/diagnose/constants.h"

#include <algorithm>
#include <vector>

namespace idlescope::diagnose {
namespace {

using model::kNone;
using model::Ns;

constexpr size_t kEnough = 20;
constexpr size_t kSamples = 100'000;

// Value at `share` of the sorted samples, or the fall-back.
Ns quantile(std::vector<Ns>& samples, double share, Ns fallback) {
  if (samples.size() < kEnough) return fallback;
  const auto at = static_cast<size_t>(share * static_cast<double>(samples.size() - 1));
  std::nth_element(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(at), samples.end());
  return samples[at];
}

struct DeviceSamples {
  std::vector<Ns> latency;
  std::vector<Ns> dispatch;
  std::vector<Ns> sync_return;
  std::vector<double> rate[2][2];  // [pageable][D2H]
};

DeviceSamples sample_device(const model::Model& model, const model::DeviceTimeline& device) {
  DeviceSamples out;
  const read::Process& process = model.process_of(device);
  const size_t stride = std::max<size_t>(1, device.ops.size() / kSamples);
  std::vector<Ns> stream_end(process.streams.size() + 1, INT64_MIN);
  for (size_t i = 0; i < device.ops.size(); ++i) {
    const read::Op& op = process.ops[device.ops[i]];
    const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
    Ns& end = stream_end[std::min<size_t>(descriptor.stream, process.streams.size())];
    if (op.call != kNone && i % stride == 0 && descriptor.graph_id == 0) {
      const read::Call& call = process.calls[op.call];
      if (end <= call.begin_ns && end != INT64_MIN) {
        out.latency.push_back(op.begin_ns - call.begin_ns);
      } else if (call.end_ns <= end && op.begin_ns >= end) {
        out.dispatch.push_back(op.begin_ns - end);
      }
    }
    if (descriptor.kind == trace::OP_MEMCPY && descriptor.bytes >= (4u << 20) &&
        op.end_ns > op.begin_ns) {
      const bool to_host = descriptor.copy_kind == trace::COPY_D2H;
      const trace::MemoryKind host = to_host ? descriptor.dst_kind : descriptor.src_kind;
      if (host == trace::MEMORY_PAGEABLE || host == trace::MEMORY_PINNED) {
        out.rate[host == trace::MEMORY_PAGEABLE][to_host].push_back(
            static_cast<double>(descriptor.bytes) / static_cast<double>(op.end_ns - op.begin_ns));
      }
    }
    end = std::max(end, op.end_ns);
  }
  return out;
}

// Return of each stream or device sync after the last op end inside it.
void sample_syncs(const model::Model& model, const model::DeviceTimeline& device,
                  DeviceSamples& out) {
  const read::Process& process = model.process_of(device);
  for (const read::Call& call : process.calls) {
    const trace::CallClass call_class = process.call_descriptors[call.descriptor].call_class;
    if (call_class != trace::CALL_STREAM_SYNC && call_class != trace::CALL_DEVICE_SYNC) continue;
    if (call.parent != kNone || out.sync_return.size() >= kSamples) continue;
    // The latest op that began before the return and ended inside the call.
    auto it = std::partition_point(device.ops.begin(), device.ops.end(), [&](uint32_t i) {
      return process.ops[i].begin_ns < call.end_ns;
    });
    Ns latest = INT64_MIN;
    for (int steps = 0; it != device.ops.begin() && steps < 16; ++steps) {
      --it;
      const Ns end = process.ops[*it].end_ns;
      if (end <= call.end_ns) latest = std::max(latest, end);
    }
    if (latest > call.begin_ns) out.sync_return.push_back(call.end_ns - latest);
  }
}

std::vector<Ns> launch_intervals(const model::Model& model, const model::DeviceTimeline& device) {
  std::vector<Ns> intervals;
  const read::Process& process = model.process_of(device);
  const model::CallClasses& classes = model.processes[device.process].classes;
  const size_t stride = std::max<size_t>(1, process.calls.size() / kSamples);
  const read::Call* previous = nullptr;
  size_t seen = 0;
  for (size_t i = 0; i < process.calls.size(); ++i) {
    const read::Call& call = process.calls[i];
    if (call.parent != kNone || !model::hands_out_work(static_cast<trace::CallClass>(classes[i]))) {
      continue;
    }
    const auto thread_of = [&](const read::Call& c) {
      return process.call_descriptors[c.descriptor].thread_id;
    };
    if (previous != nullptr && thread_of(*previous) == thread_of(call) && seen++ % stride == 0) {
      const Ns interval = call.begin_ns - previous->begin_ns;
      // Inside bursts only: longer pauses are not dispatching.
      if (interval > 0 && interval < 200'000) intervals.push_back(interval);
    }
    previous = &call;
  }
  return intervals;
}

double quantile90(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(0.9 * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace

Constants measure_constants(const model::Model& model, const model::DeviceTimeline& device) {
  Constants c;
  DeviceSamples samples = sample_device(model, device);
  sample_syncs(model, device, samples);
  std::vector<Ns> intervals = launch_intervals(model, device);
  c.launch_latency_ns =
      std::clamp<Ns>(quantile(samples.latency, 0.10, c.launch_latency_ns), 2'000, 50'000);
  c.dispatch_ns = std::clamp<Ns>(quantile(samples.dispatch, 0.50, c.dispatch_ns), 0, 5'000);
  c.sync_return_ns =
      std::clamp<Ns>(quantile(samples.sync_return, 0.50, c.sync_return_ns), 1'000, 200'000);
  c.launch_interval_ns = std::max<Ns>(1'000, quantile(intervals, 0.50, c.launch_interval_ns));
  c.burst_ns = std::min<Ns>(std::max<Ns>(50'000, 8 * c.launch_interval_ns), 200'000);
  for (int to_host : {0, 1}) {
    c.pinned_bytes_per_ns[to_host] = quantile90(samples.rate[0][to_host]);
    c.pageable_bytes_per_ns[to_host] = quantile90(samples.rate[1][to_host]);
  }
  return c;
}

}  // namespace idlescope::diagnose
