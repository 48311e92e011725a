#include "tests/unit/read/describe.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "analysis/read/plausible_time.h"

namespace idlescope::test {
namespace {

using read::Call;
using read::kNone;
using read::Op;
using read::Process;

std::string describe_call(const read::Recording& recording, const Process& process,
                          uint32_t index) {
  if (index == kNone) return "-";
  const Call& call = process.calls[index];
  const auto& descriptor = process.call_descriptors[call.descriptor];
  return fmt::format("{}[{},{})#{}@{}", recording.strings[descriptor.name], call.begin_ns,
                     call.end_ns, call.correlation, descriptor.thread_id);
}

}  // namespace

std::string describe(const read::Recording& recording) {
  std::string out;
  for (const Process& process : recording.processes) {
    out += fmt::format("process {} [{},{}]\n", process.header.process().pid(), process.first_ns,
                       process.last_ns);
    for (const auto& window : process.windows) {
      out += fmt::format("window {} [{},{}) {}\n", window.id, window.begin_ns, window.end_ns,
                         window.begin.ShortDebugString());
    }
    for (const Op& op : process.ops) {
      const auto& descriptor = process.op_descriptors[op.descriptor];
      out += fmt::format("op {} '{}' [{},{}) stream {} window {} call {}\n",
                         trace::OpKind_Name(descriptor.kind), recording.strings[descriptor.name],
                         op.begin_ns, op.end_ns, process.streams[descriptor.stream].stream_id,
                         op.window == kNone ? 0 : process.windows[op.window].id,
                         describe_call(recording, process, op.call));
    }
    for (uint32_t i = 0; i < process.calls.size(); ++i) {
      out += "call " + describe_call(recording, process, i) + " in " +
             describe_call(recording, process, process.calls[i].parent) + "\n";
    }
    for (const auto& event : process.host_events) {
      out += fmt::format("event {} @{} [{},{}) it {} ep {} batch {} a {} b {} c {}\n",
                         trace::HostEventKind_Name(event.kind), event.thread_id, event.begin_ns,
                         event.end_ns, event.iterator, event.epoch, event.batch, event.a, event.b,
                         event.c);
    }
    for (const auto& loss : process.losses) out += "loss " + loss.ShortDebugString() + "\n";
  }
  return out;
}

std::string broken_invariant(const Process& process) {
  const auto& calls = process.calls;
  for (size_t i = 0; i < process.ops.size(); ++i) {
    const Op& op = process.ops[i];
    if (!read::plausible_span(op.begin_ns, op.end_ns)) return "times of an op";
    if (op.descriptor >= process.op_descriptors.size()) return "op.descriptor out of range";
    if (op.window != kNone && op.window >= process.windows.size()) return "op.window";
    const auto& descriptor = process.op_descriptors[op.descriptor];
    if (descriptor.stream >= process.streams.size()) return "op stream out of range";
    if (descriptor.device >= process.devices.size()) return "op device out of range";
    if (op.begin_ns < process.first_ns || op.end_ns > process.last_ns) return "extent of ops";
    if (i > 0 && std::tie(op.begin_ns, op.end_ns) <
                     std::tie(process.ops[i - 1].begin_ns, process.ops[i - 1].end_ns)) {
      return "ops are not sorted";
    }
    if (op.call != kNone) {
      if (op.call >= calls.size()) return "op.call out of range";
      const Call& call = calls[op.call];
      if (call.correlation != op.correlation || call.window != op.window) {
        return "an op is joined to a call of another key";
      }
    }
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (!read::plausible_span(call.begin_ns, call.end_ns)) return "times of a call";
    if (call.descriptor >= process.call_descriptors.size()) return "call.descriptor";
    if (call.begin_ns < process.first_ns || call.end_ns > process.last_ns) return "extent";
    const uint32_t thread = process.call_descriptors[call.descriptor].thread_id;
    if (call.parent != kNone) {
      if (call.parent >= i) return "a parent comes after its child";
      const Call& parent = calls[call.parent];
      if (process.call_descriptors[parent.descriptor].thread_id != thread ||
          parent.begin_ns > call.begin_ns || parent.end_ns < call.end_ns) {
        return "a parent does not enclose its child";
      }
    }
    if (i == 0) continue;
    const Call& before = calls[i - 1];
    const uint32_t thread_before = process.call_descriptors[before.descriptor].thread_id;
    if (std::make_tuple(thread_before, before.begin_ns, -before.end_ns) >
        std::make_tuple(thread, call.begin_ns, -call.end_ns)) {
      return "calls are not sorted";
    }
  }
  for (size_t i = 0; i < process.host_events.size(); ++i) {
    const auto& event = process.host_events[i];
    if (!read::plausible_span(event.begin_ns, event.end_ns)) return "times of an event";
    if (i == 0) continue;
    const auto& before = process.host_events[i - 1];
    if (std::make_tuple(before.thread_id, before.begin_ns, -before.end_ns) >
        std::make_tuple(event.thread_id, event.begin_ns, -event.end_ns)) {
      return "events are not sorted";
    }
  }
  for (const auto& window : process.windows) {
    if (window.end_ns < window.begin_ns) return "a window ends before it begins";
    if (!read::plausible_time(window.begin_ns) || !read::plausible_time(window.end_ns)) {
      return "times of a window";
    }
  }
  return "";
}

}  // namespace idlescope::test
