#include "analysis/diagnose/evidence.h"

#include <algorithm>
#include <array>
#include <string>

#include "proto/messages.h"

namespace idlescope::diagnose {
namespace {

using KindSet = std::array<bool, trace::Kind_ARRAYSIZE>;

trace::Kind kind_of_call(trace::CallClass call_class) {
  switch (call_class) {
    case trace::CALL_LAUNCH:
      return trace::KIND_CALL_LAUNCH;
    case trace::CALL_MEMCPY:
    case trace::CALL_MEMSET:
      return trace::KIND_CALL_COPY;
    case trace::CALL_STREAM_SYNC:
    case trace::CALL_DEVICE_SYNC:
    case trace::CALL_EVENT_SYNC:
      return trace::KIND_CALL_SYNC;
    case trace::CALL_ALLOC_DEVICE:
    case trace::CALL_FREE_DEVICE:
    case trace::CALL_ALLOC_PINNED:
    case trace::CALL_FREE_PINNED:
      return trace::KIND_CALL_ALLOC;
    case trace::CALL_MODULE_LOAD:
      return trace::KIND_CALL_MODULE;
    case trace::CALL_GRAPH_INSTANTIATE:
    case trace::CALL_GRAPH_LAUNCH:
    case trace::CALL_CAPTURE_BEGIN:
    case trace::CALL_CAPTURE_END:
      return trace::KIND_CALL_GRAPH;
    case trace::CALL_EVENT_RECORD:
    case trace::CALL_STREAM_WAIT_EVENT:
      return trace::KIND_CALL_EVENT;
    default:
      return trace::KIND_CALL_OTHER;
  }
}

trace::Kind kind_of_event(trace::HostEventKind kind, int64_t category) {
  if (kind >= trace::EVENT_LOADER_CREATE && kind < trace::EVENT_WORKER_LOOP) {
    return trace::KIND_LOADER;
  }
  if (kind >= trace::EVENT_WORKER_LOOP && kind < trace::EVENT_PIN_WAIT) {
    return trace::KIND_LOADER_WORKER;
  }
  switch (kind) {
    case trace::EVENT_STEP:
      return trace::KIND_STEP;
    case trace::EVENT_RANGE:
      return category == trace::RANGE_NVTX ? trace::KIND_NVTX : trace::KIND_PYTHON_RANGE;
    case trace::EVENT_GC:
    case trace::EVENT_CHECKPOINT:
      return trace::KIND_PYTHON_RANGE;
    default:
      return trace::KIND_UNKNOWN;
  }
}

// What windows say was recorded, and what is there.
KindSet recorded_kinds(const model::Model& model, uint32_t process) {
  KindSet kinds{};
  const read::Process& p = model.recording.processes[process];
  for (const read::Window& window : p.windows) {
    for (const int kind : window.begin.kinds()) {
      if (kind > 0 && kind < static_cast<int>(kinds.size()))
        kinds[static_cast<size_t>(kind)] = true;
    }
  }
  for (const read::OpDescriptor& op : p.op_descriptors) {
    switch (op.kind) {
      case trace::OP_MEMCPY:
        kinds[trace::KIND_MEMCPY] = true;
        break;
      case trace::OP_MEMSET:
        kinds[trace::KIND_MEMSET] = true;
        break;
      case trace::OP_GRAPH:
        kinds[trace::KIND_GRAPH_TRACE] = true;
        break;
      default:
        kinds[trace::KIND_KERNEL] = true;
    }
  }
  for (const read::CallDescriptor& call : p.call_descriptors) {
    kinds[kind_of_call(call.call_class)] = true;
  }
  for (const read::HostEvent& event : p.host_events) {
    kinds[kind_of_event(event.kind, event.b)] = true;
  }
  for (const uint32_t worker : model.loader.worker_processes) {
    if (!model.recording.processes[worker].host_events.empty()) {
      kinds[trace::KIND_LOADER_WORKER] = true;
    }
  }
  if (!p.overheads.empty()) kinds[trace::KIND_OVERHEAD] = true;
  if (!p.counters.empty()) kinds[trace::KIND_COUNTER] = true;
  kinds[trace::KIND_UNKNOWN] = false;
  return kinds;
}

struct Row {  // of docs/evidence.md
  report::Leaf leaf;
  trace::Kind kind;
  std::string_view question;
  bool needs_device;
};

constexpr Row kRows[] = {
    {report::BUSY_COMPUTE, trace::KIND_KERNEL, "what the GPU does", false},
    {report::LAUNCH_LEAF, trace::KIND_CALL_LAUNCH, "whether the GPU waits for launches", true},
    {report::SYNC_EXPLICIT, trace::KIND_CALL_SYNC, "what synchronisation costs", true},
    {report::ALLOC_DEVICE, trace::KIND_CALL_ALLOC, "what allocation costs", true},
    {report::COMPILE_MODULE, trace::KIND_CALL_MODULE, "what loading of GPU code costs", true},
    {report::XFER_OTHER, trace::KIND_MEMCPY, "what copies cost", true},
    {report::PROFILER, trace::KIND_OVERHEAD, "what tracing itself costs inside windows", true},
    {report::DATA_FETCH, trace::KIND_LOADER, "whether it waits for data", false},
    {report::DATA_CPU, trace::KIND_LOADER_WORKER, "what loader workers do", false},
    {report::CKPT, trace::KIND_PYTHON_RANGE,
     "what checkpoints, garbage collection and compiling cost", false},
};

Abstention abstain(report::Leaf leaf, trace::Kind kind, std::string_view question) {
  Abstention out;
  out.leaf = leaf;
  out.missing_kind = trace::Kind_Name(kind);
  out.statement.message = messages::kMissingKind;
  out.statement.values = {{"kind", out.missing_kind}, {"question", std::string(question)}};
  return out;
}

bool communicates(const model::Model& model, uint32_t process) {
  const read::Process& p = model.recording.processes[process];
  if (p.header.process().world_size() < 2) return false;
  const std::vector<model::Work>& work = model.processes[process].work;
  return std::find(work.begin(), work.end(), model::Work::kComm) != work.end();
}

// Ranks whose GPU work is in the recording.
size_t ranks_of_job(const model::Model& model, uint32_t process) {
  const int32_t size =
      static_cast<int32_t>(model.recording.processes[process].header.process().world_size());
  size_t ranks = 0;
  for (const read::Process& other : model.recording.processes) {
    const trace::Process& identity = other.header.process();
    if (!other.ops.empty() && identity.has_rank() &&
        static_cast<int32_t>(identity.world_size()) == size) {
      ++ranks;
    }
  }
  return ranks;
}

}  // namespace

EvidenceSummary summarize_evidence(const model::Model& model, uint32_t process,
                                   const DevicePass* pass, const Shares* shares) {
  EvidenceSummary out;
  const read::Process& p = model.recording.processes[process];
  const KindSet kinds = recorded_kinds(model, process);
  for (int kind = 1; kind < trace::Kind_ARRAYSIZE; ++kind) {
    if (!trace::Kind_IsValid(kind)) continue;
    const std::string name = trace::Kind_Name(static_cast<trace::Kind>(kind));
    (kinds[static_cast<size_t>(kind)] ? out.recorded_kinds : out.missing_kinds).push_back(name);
  }
  out.truncated = model.recording.truncated;
  out.windows = p.windows.size();
  out.clock_shift_ns = model.clock.largest_shift_ns;
  out.clock_violations = model.clock.violations;
  for (const trace::Loss& loss : p.losses) {
    switch (loss.loss_kind()) {
      case trace::LOSS_CUPTI_DROPPED:
      case trace::LOSS_BUFFER:
      case trace::LOSS_INCOMPLETE:
        out.dropped += loss.count();
        break;
      default:
        break;
    }
  }
  for (const read::Op& op : p.ops) {
    if (op.call == kNone) ++out.unjoined;
  }
  out.ops = p.ops.size();
  if (out.ops > 0) {
    out.join_rate = 1 - static_cast<double>(out.unjoined) / static_cast<double>(out.ops);
    out.dropped_share =
        static_cast<double>(out.dropped) / static_cast<double>(out.ops + out.dropped);
  }
  double utilization = 0;
  double samples = 0;
  for (const read::Counter& counter : p.counters) {
    if (counter.kind == trace::COUNTER_NVML_UTILIZATION_PERCENT) {
      utilization += static_cast<double>(counter.value);
      samples += 1;
    } else if (counter.kind == trace::COUNTER_NVML_OTHER_PROCESSES) {
      out.other_processes = std::max(out.other_processes, static_cast<uint32_t>(counter.value));
    }
  }
  if (samples > 0) out.nvml_utilization = utilization / samples / 100;
  if (pass == nullptr || shares == nullptr) return out;

  const Ns absent = shares->base_ns - pass->ledger->leaf_ns(report::BUSY_COMPUTE);
  out.absent_ns = absent;
  if (absent <= 0) return out;
  for (const LeafTime& time : shares->leaves) {
    if (time.leaf == report::BUSY_COMPUTE || time.leaf == report::PROFILER ||
        time.leaf == report::NOTEBOOK_IDLE) {
      continue;
    }
    for (size_t g = 0; g < 3; ++g) {
      out.grade[g] += static_cast<double>(time.grade_ns[g]) / static_cast<double>(absent);
    }
  }
  out.unknown_of_absent = shares->unknown_ns / static_cast<double>(absent);
  out.unknown_of_window =
      shares->unknown_ns / static_cast<double>(std::max<Ns>(1, shares->base_ns));
  return out;
}

std::vector<Abstention> find_abstentions(const model::Model& model, uint32_t process,
                                         bool has_device) {
  std::vector<Abstention> out;
  const KindSet kinds = recorded_kinds(model, process);
  bool uses_workers = false;
  for (const model::Iterator& iterator : model.loader.iterators) {
    uses_workers = uses_workers || (iterator.process == process && iterator.num_workers > 0);
  }
  for (const Row& row : kRows) {
    if (row.needs_device && !has_device) continue;
    if (kinds[row.kind]) continue;
    // A loader without workers has no worker records to miss.
    if (row.kind == trace::KIND_LOADER_WORKER && !uses_workers) continue;
    out.push_back(abstain(row.leaf, row.kind, row.question));
  }
  if (has_device && communicates(model, process) && ranks_of_job(model, process) < 2) {
    Abstention who;
    who.leaf = report::COMM_STRAGGLER;
    who.statement.message = messages::kCommUnverified;
    out.push_back(std::move(who));
  }
  return out;
}

CostSummary summarize_cost(const model::Model& model, uint32_t process) {
  CostSummary out;
  const read::Process& p = model.recording.processes[process];
  for (const read::Window& window : p.windows) {
    out.attach_ns += window.begin.attach_ns();
    out.detach_ns += window.end.detach_ns();
    out.per_call_cost_ns = std::max<Ns>(out.per_call_cost_ns, window.end.per_call_cost_ns());
  }
  const trace::SelfStatistics& self = p.footer.self();
  if (p.has_footer && self.estimated_cost_ns() >= 0 && self.wall_ns() > 0) {
    out.share_of_run =
        static_cast<double>(self.estimated_cost_ns()) / static_cast<double>(self.wall_ns());
  }
  return out;
}

}  // namespace idlescope::diagnose
