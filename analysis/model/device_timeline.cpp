#include "analysis/model/device_timeline.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace idlescope::model {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

Work work_of_copy(const read::OpDescriptor& descriptor) {
  const auto on_device = [](trace::MemoryKind kind) {
    return kind == trace::MEMORY_DEVICE || kind == trace::MEMORY_ARRAY;
  };
  switch (descriptor.copy_kind) {
    case trace::COPY_D2D:
      return Work::kMemory;
    case trace::COPY_P2P:
      return Work::kComm;
    case trace::COPY_UNKNOWN:
      if (on_device(descriptor.src_kind) && on_device(descriptor.dst_kind)) return Work::kMemory;
      return Work::kCopy;
    default:
      return Work::kCopy;
  }
}

// Windows of the process, or one that spans everything where the source has none.
std::vector<WindowSpan> window_spans(const read::Process& process) {
  std::vector<WindowSpan> spans;
  for (uint32_t i = 0; i < process.windows.size(); ++i) {
    const read::Window& window = process.windows[i];
    spans.push_back({i, window.begin_ns, std::max(window.begin_ns, window.end_ns), 0, 0});
  }
  std::sort(spans.begin(), spans.end(),
            [](const WindowSpan& a, const WindowSpan& b) { return a.begin_ns < b.begin_ns; });
  return spans;
}

// Gives each window its run of ops. An op belongs to the window it was recorded in; the
// begin decides where the record does not say. Ops are sorted by begin and windows do not
// overlap, so the runs are contiguous but for ops that outlive their window's end.
void assign_windows(const read::Process& process, DeviceTimeline& timeline) {
  if (timeline.windows.empty()) {
    timeline.windows.push_back({kNone, 0, 0, 0, 0});
  }
  std::vector<WindowSpan>& spans = timeline.windows;
  size_t next = 0;
  for (size_t w = 0; w < spans.size(); ++w) {
    WindowSpan& span = spans[w];
    const bool is_last = w + 1 == spans.size();
    span.first = next;
    while (next < timeline.ops.size()) {
      const read::Op& op = process.ops[timeline.ops[next]];
      if (!is_last && op.begin_ns >= spans[w + 1].begin_ns) break;
      ++next;
    }
    span.last = next;
    for (size_t i = span.first; i < span.last; ++i) {
      const read::Op& op = process.ops[timeline.ops[i]];
      span.end_ns = std::max(span.end_ns, op.end_ns);
    }
    if (span.window == kNone && span.first < span.last) {
      span.begin_ns = process.ops[timeline.ops[span.first]].begin_ns;
    } else if (span.first < span.last) {
      span.begin_ns = std::min(span.begin_ns, process.ops[timeline.ops[span.first]].begin_ns);
    }
    if (!is_last) span.end_ns = std::min(span.end_ns, spans[w + 1].begin_ns);
  }
  std::erase_if(spans, [](const WindowSpan& span) { return span.first == span.last; });
}

void find_shared(const read::Recording& recording, std::vector<DeviceTimeline>& timelines) {
  const auto identity = [&](const DeviceTimeline& t) -> std::string_view {
    if (t.device == kNone) return {};
    return recording.processes[t.process].devices[t.device].identity;
  };
  const auto begin = [&](const DeviceTimeline& t) { return t.windows.front().begin_ns; };
  const auto end = [&](const DeviceTimeline& t) { return t.windows.back().end_ns; };
  for (size_t a = 0; a < timelines.size(); ++a) {
    for (size_t b = a + 1; b < timelines.size(); ++b) {
      if (timelines[a].process == timelines[b].process) continue;
      if (identity(timelines[a]).empty() || identity(timelines[a]) != identity(timelines[b])) {
        continue;
      }
      if (begin(timelines[a]) < end(timelines[b]) && begin(timelines[b]) < end(timelines[a])) {
        timelines[a].shared = timelines[b].shared = true;
      }
    }
  }
}

}  // namespace

bool is_comm_kernel(std::string_view name) {
  const std::string text = lower(name);
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  return (has("nccl") && has("kernel")) || has("nvshmem") || has("deep_ep") || has("deepep");
}

std::vector<Work> classify_work(const read::Recording& recording, const read::Process& process) {
  std::vector<Work> work;
  work.reserve(process.op_descriptors.size());
  for (const read::OpDescriptor& descriptor : process.op_descriptors) {
    switch (descriptor.kind) {
      case trace::OP_MEMCPY:
        work.push_back(work_of_copy(descriptor));
        break;
      case trace::OP_MEMSET:
        work.push_back(Work::kMemory);
        break;
      default:
        work.push_back(is_comm_kernel(recording.strings[descriptor.name]) ? Work::kComm
                                                                          : Work::kCompute);
    }
  }
  return work;
}

std::vector<DeviceTimeline> build_device_timelines(const read::Recording& recording) {
  std::vector<DeviceTimeline> timelines;
  for (uint32_t p = 0; p < recording.processes.size(); ++p) {
    const read::Process& process = recording.processes[p];
    if (process.ops.empty()) continue;
    // Slot per device of the process; the last one collects ops without a device.
    std::vector<DeviceTimeline> slots(process.devices.size() + 1);
    std::vector<size_t> counts(slots.size(), 0);
    const auto slot_of = [&](const read::Op& op) {
      const uint32_t device = process.op_descriptors[op.descriptor].device;
      return device < process.devices.size() ? device : process.devices.size();
    };
    for (const read::Op& op : process.ops) ++counts[slot_of(op)];
    for (size_t s = 0; s < slots.size(); ++s) slots[s].ops.reserve(counts[s]);
    for (uint32_t i = 0; i < process.ops.size(); ++i) {
      slots[slot_of(process.ops[i])].ops.push_back(i);
    }
    for (uint32_t s = 0; s < slots.size(); ++s) {
      DeviceTimeline& timeline = slots[s];
      if (timeline.ops.empty()) continue;
      timeline.process = p;
      timeline.device = s < process.devices.size() ? s : kNone;
      timeline.windows = window_spans(process);
      assign_windows(process, timeline);
      timelines.push_back(std::move(timeline));
    }
  }
  find_shared(recording, timelines);
  return timelines;
}

}  // namespace idlescope::model
