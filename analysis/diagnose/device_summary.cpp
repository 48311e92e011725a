#include "analysis/diagnose/device_summary.h"

#include <algorithm>
#include <map>
#include <string>

#include "analysis/diagnose/gap_evidence.h"
#include "analysis/diagnose/kernel_drift.h"
#include "analysis/diagnose/kernel_fill.h"
#include "analysis/model/steady_part.h"

namespace idlescope::diagnose {
namespace {

using model::Work;

constexpr size_t kSamples = 100'000;

// Walks ops or calls in time order against the analysed spans.
class SpanCursor {
 public:
  explicit SpanCursor(const std::vector<model::DeviceStep>& spans) : spans_(spans) {}
  bool inside(Ns time_ns) {
    if (at_ > 0 && at_ <= spans_.size() && spans_[at_ - 1].end_ns > time_ns) at_ = 0;
    while (at_ < spans_.size() && spans_[at_].end_ns <= time_ns) ++at_;
    return at_ < spans_.size() && spans_[at_].begin_ns <= time_ns;
  }

 private:
  const std::vector<model::DeviceStep>& spans_;
  size_t at_ = 0;
};

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[(static_cast<unsigned char>(c) >> 4) & 15];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string copy_path(const read::OpDescriptor& copy) {
  if (copy.kind == trace::OP_MEMSET) return "memset";
  const char* host = "";
  const auto kind_name = [](trace::MemoryKind kind) {
    switch (kind) {
      case trace::MEMORY_PAGEABLE:
        return " pageable";
      case trace::MEMORY_PINNED:
        return " pinned";
      case trace::MEMORY_MANAGED:
        return " managed";
      default:
        return "";
    }
  };
  switch (copy.copy_kind) {
    case trace::COPY_H2D:
      host = kind_name(copy.src_kind);
      return std::string("H2D") + host;
    case trace::COPY_D2H:
      host = kind_name(copy.dst_kind);
      return std::string("D2H") + host;
    case trace::COPY_D2D:
      return "D2D";
    case trace::COPY_P2P:
      return "P2P";
    case trace::COPY_H2H:
      return "H2H";
    default:
      return "copy";
  }
}

void summarize_launching(const model::Model& model, const DevicePass& pass, DeviceDiagnosis& out) {
  const model::DeviceTimeline& device = model.devices[pass.device];
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  SpanCursor cursor(pass.spans);
  std::vector<int64_t> kernel, lead, launch_call;
  uint64_t in_graphs = 0;
  uint64_t launches = 0;
  uint32_t previous_call = kNone;
  const size_t stride = std::max<size_t>(1, device.ops.size() / kSamples);
  for (size_t i = 0; i < device.ops.size(); ++i) {
    const read::Op& op = process.ops[device.ops[i]];
    if (!cursor.inside(op.begin_ns)) continue;
    const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
    if (descriptor.graph_id != 0) ++in_graphs;
    if (op.call != previous_call || op.call == kNone) ++launches;
    previous_call = op.call;
    if (i % stride != 0) continue;
    if (owner.work[op.descriptor] == Work::kCompute) kernel.push_back(op.end_ns - op.begin_ns);
    if (op.call != kNone && owner.work[op.descriptor] == Work::kCompute) {
      const read::Call& call = process.calls[op.call];
      lead.push_back(op.begin_ns - call.end_ns);
      launch_call.push_back(call.end_ns - call.begin_ns);
    }
  }
  const double steps =
      pass.window_only ? 1 : std::max<double>(1, static_cast<double>(pass.spans.size()));
  out.launches_per_step = static_cast<double>(launches) / steps;
  out.median_kernel_ns = model::median(std::move(kernel));
  out.median_lead_ns = model::median(std::move(lead));
  out.median_launch_call_ns = model::median(std::move(launch_call));
  out.median_launch_interval_ns = pass.constants.launch_interval_ns;
  out.ops_in_graphs =
      pass.ops == 0 ? 0 : static_cast<double>(in_graphs) / static_cast<double>(pass.ops);

  // A4. Command-buffer-full records, or a host far ahead: the queue is the limit.
  bool full = false;
  for (const read::Overhead& overhead : process.overheads) {
    full = full || (overhead.kind == trace::OVERHEAD_COMMAND_BUFFER_FULL &&
                    SpanCursor(pass.spans).inside(overhead.begin_ns));
  }
  int64_t recording = 0;
  for (const read::Window& window : process.windows) {
    recording = std::max(recording, window.end.per_call_cost_ns());
  }
  const Ns interval = std::max<Ns>(0, pass.constants.launch_interval_ns - recording);
  out.back_pressure = full || out.median_lead_ns > 20 * pass.constants.launch_interval_ns;
  out.launch_bound = !out.back_pressure && launches > 0 &&
                     static_cast<double>(out.kernel_sum_ns) <
                         static_cast<double>(launches) * static_cast<double>(interval) &&
                     out.median_lead_ns < 2 * pass.constants.launch_latency_ns + recording;
}

// Per op descriptor: time of copies and memsets with no compute at the same time, whatever it
// is charged to.
std::vector<Ns> exposed_copies(const model::Model& model, const model::DeviceTimeline& device,
                               const DevicePass& pass) {
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  struct Span {
    Ns begin_ns, end_ns;
  };
  std::vector<Span> compute;  // merged, in time order
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    if (owner.work[op.descriptor] != Work::kCompute) continue;
    if (!compute.empty() && op.begin_ns <= compute.back().end_ns) {
      compute.back().end_ns = std::max(compute.back().end_ns, op.end_ns);
    } else {
      compute.push_back({op.begin_ns, op.end_ns});
    }
  }
  std::vector<Ns> exposed(process.op_descriptors.size(), 0);
  SpanCursor cursor(pass.spans);
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    const trace::OpKind kind = process.op_descriptors[op.descriptor].kind;
    if (kind != trace::OP_MEMCPY && kind != trace::OP_MEMSET) continue;
    if (!cursor.inside(op.begin_ns)) continue;
    Ns alone = op.end_ns - op.begin_ns;
    auto it = std::partition_point(compute.begin(), compute.end(),
                                   [&](const Span& s) { return s.end_ns <= op.begin_ns; });
    for (; it != compute.end() && it->begin_ns < op.end_ns; ++it) {
      alone -= std::min(it->end_ns, op.end_ns) - std::max(it->begin_ns, op.begin_ns);
    }
    exposed[op.descriptor] += alone;
  }
  return exposed;
}

// A stretch of launches that no wait interrupts is worth a graph of its own from this many on, or
// where it is this part of a step.
constexpr uint64_t kWorthAGraph = 50;
constexpr double kOfAStep = 0.25;

// A graph holds no wait for the device (a stream that is captured must not be synchronised).
void find_waits(const read::Process& process, const std::vector<model::DeviceStep>& spans,
                DeviceDiagnosis& out) {
  std::vector<uint64_t> stretches(1, 0);
  uint64_t launches = 0;
  SpanCursor cursor(spans);
  for (const read::Call& call : process.calls) {
    if (call.parent != kNone || !cursor.inside(call.begin_ns)) continue;
    switch (process.call_descriptors[call.descriptor].call_class) {
      case trace::CALL_LAUNCH:
      case trace::CALL_GRAPH_LAUNCH:
        ++stretches.back();
        ++launches;
        break;
      case trace::CALL_STREAM_SYNC:
      case trace::CALL_DEVICE_SYNC:
      case trace::CALL_EVENT_SYNC:
        stretches.push_back(0);
        break;
      default:
        break;
    }
  }
  if (launches == 0) return;
  const double steps = static_cast<double>(std::max<size_t>(1, spans.size()));
  const double enough =
      std::min(static_cast<double>(kWorthAGraph), kOfAStep * static_cast<double>(launches) / steps);
  uint64_t long_ones = 0;
  for (const uint64_t stretch : stretches) {
    if (static_cast<double>(stretch) >= enough) long_ones += stretch;
  }
  out.launches_between_waits = static_cast<double>(long_ones) / static_cast<double>(launches);
  out.waits_per_step = static_cast<double>(stretches.size() - 1) / steps;
}

}  // namespace

DeviceDiagnosis summarize_device(const model::Model& model, const DevicePass& pass,
                                 const Shares& shares) {
  DeviceDiagnosis out;
  const model::DeviceTimeline& device = model.devices[pass.device];
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  out.process = device.process;
  if (device.device < process.devices.size()) {
    const trace::Device& info = process.devices[device.device].info;
    out.device_id = info.device_id();
    out.name = info.name();
    out.uuid = hex(info.uuid());
    out.sm_count = info.sm_count();
    out.memory_bytes = info.memory_bytes();
  }
  out.shared_with_other_process = device.shared;
  out.ops = pass.ops;
  out.window_ns = pass.ledger->total_ns();
  out.compute_ns = pass.ledger->leaf_ns(report::BUSY_COMPUTE);
  out.mem_ns = pass.ledger->leaf_ns(report::BUSY_MEM);
  out.hidden_copy_ns = pass.hidden.copy_ns;
  out.hidden_comm_ns = pass.hidden.comm_ns;
  if (!pass.window_only) find_waits(process, pass.spans, out);
  out.leaves = shares.leaves;
  out.verdict_shares = shares.verdicts;

  const std::vector<KernelFill> rated = rate_kernels(model, device);
  SpanCursor cursor(pass.spans);
  double rated_ns = 0;
  double fill_ns = 0;
  double opaque_ns = 0;
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    if (owner.work[op.descriptor] != Work::kCompute || !cursor.inside(op.begin_ns)) continue;
    const Ns length = op.end_ns - op.begin_ns;
    const KernelFill& fill = rated[op.descriptor];
    ++out.kernels;
    out.kernel_sum_ns += length;
    if (process.op_descriptors[op.descriptor].kind == trace::OP_GRAPH) {
      opaque_ns += static_cast<double>(length);
    }
    if (length < 2 * pass.constants.launch_latency_ns) out.tiny_ns += length;
    if (fill.fp32_matrix) out.fp32_matrix_ns += length;
    if (fill.fill < 0) continue;
    rated_ns += static_cast<double>(length);
    fill_ns += static_cast<double>(length) * fill.fill;
    if (fill.waves > 0 && fill.waves < 1) {
      out.underfilled_ns += static_cast<Ns>(static_cast<double>(length) * (1 - fill.fill));
    } else if (fill.waves >= 1) {
      const double rounded = static_cast<double>(static_cast<int64_t>(fill.waves + 0.999999));
      out.tail_ns += static_cast<Ns>(static_cast<double>(length) * (1 - fill.waves / rounded));
    }
  }
  if (rated_ns > 0) out.fill = fill_ns / rated_ns;
  if (out.kernel_sum_ns > 0) {
    out.opaque_share = opaque_ns / static_cast<double>(out.kernel_sum_ns);
  }
  if (out.kernel_sum_ns > 0) out.rated_share = rated_ns / static_cast<double>(out.kernel_sum_ns);
  out.kernel_drift = kernel_drift(model, pass);
  summarize_launching(model, pass, out);
  return out;
}

DeviceTables tabulate_device(const model::Model& model, const DevicePass& pass) {
  DeviceTables tables;
  const model::DeviceTimeline& device = model.devices[pass.device];
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  const std::vector<KernelFill> rated = rate_kernels(model, device);

  struct Sum {
    uint64_t count = 0;
    Ns total = 0;
    Ns tiny = 0;
  };
  std::vector<Sum> sums(process.op_descriptors.size());
  SpanCursor cursor(pass.spans);
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    if (!cursor.inside(op.begin_ns)) continue;
    Sum& sum = sums[op.descriptor];
    const Ns length = op.end_ns - op.begin_ns;
    ++sum.count;
    sum.total += length;
    if (length < 2 * pass.constants.launch_latency_ns) sum.tiny += length;
  }

  const std::vector<Ns> exposed = exposed_copies(model, device, pass);
  std::map<std::string, KernelSummary> kernels;
  std::map<std::string, CopySummary> copies;
  struct FillSum {
    double weighted = 0;
    double rated = 0;
  };
  std::map<std::string, FillSum> fills;
  for (size_t d = 0; d < sums.size(); ++d) {
    if (sums[d].count == 0) continue;
    const read::OpDescriptor& descriptor = process.op_descriptors[d];
    const double total = static_cast<double>(sums[d].total);
    if (descriptor.kind == trace::OP_MEMCPY || descriptor.kind == trace::OP_MEMSET) {
      const std::string path = copy_path(descriptor);
      CopySummary& copy = copies[path];
      copy.path = path;
      copy.count += sums[d].count;
      copy.bytes += sums[d].count * descriptor.bytes;
      copy.total_ns += sums[d].total;
      copy.exposed_ns += exposed[d];
      copy.charged_ns += pass.waited_for[d];
      if (descriptor.bytes < (64u << 10)) copy.small_ns += total;
      continue;
    }
    read::Op any;
    any.descriptor = static_cast<uint32_t>(d);
    const std::string name = op_name(model.recording, process, any);
    KernelSummary& kernel = kernels[name];
    kernel.name = name;
    kernel.count += sums[d].count;
    kernel.total_ns += sums[d].total;
    kernel.tiny_ns += sums[d].tiny;
    kernel.comm = owner.work[d] == Work::kComm;
    kernel.fp32_matrix = rated[d].fp32_matrix;
    if (rated[d].fill < 0) continue;
    fills[name].weighted += rated[d].fill * total;
    fills[name].rated += total;
    if (rated[d].waves > 0 && rated[d].waves < 1) {
      kernel.underfilled_ns += static_cast<Ns>(total * (1 - rated[d].fill));
    } else if (rated[d].waves >= 1) {
      const double rounded = static_cast<double>(static_cast<int64_t>(rated[d].waves + 0.999999));
      kernel.tail_ns += static_cast<Ns>(total * (1 - rated[d].waves / rounded));
    }
  }
  for (auto& [name, kernel] : kernels) {
    if (fills[name].rated > 0) kernel.fill = fills[name].weighted / fills[name].rated;
    tables.kernels.push_back(kernel);
  }
  for (auto& [path, copy] : copies) tables.copies.push_back(copy);

  std::vector<Sum> call_sums(process.call_descriptors.size());
  SpanCursor call_cursor(pass.spans);
  for (const read::Call& call : process.calls) {
    if (call.parent != kNone || !call_cursor.inside(call.begin_ns)) continue;
    ++call_sums[call.descriptor].count;
    call_sums[call.descriptor].total += call.end_ns - call.begin_ns;
  }
  std::map<uint32_t, CallSummary> calls;
  for (size_t d = 0; d < call_sums.size(); ++d) {
    if (call_sums[d].count == 0 && pass.call_cost[d] == 0) continue;
    const uint32_t name = process.call_descriptors[d].name;
    CallSummary& call = calls[name];
    call.name = model.recording.strings[name];
    call.count += call_sums[d].count;
    call.host_ns += call_sums[d].total;
    call.cost_ns += pass.call_cost[d];
  }
  for (auto& [name, call] : calls) tables.calls.push_back(call);

  const auto by_total = [](const auto& a, const auto& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.count > b.count;
  };
  std::stable_sort(tables.kernels.begin(), tables.kernels.end(), by_total);
  std::stable_sort(tables.copies.begin(), tables.copies.end(), by_total);
  std::stable_sort(tables.calls.begin(), tables.calls.end(),
                   [](const auto& a, const auto& b) { return a.host_ns > b.host_ns; });
  return tables;
}

}  // namespace idlescope::diagnose
