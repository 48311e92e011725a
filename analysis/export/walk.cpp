#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/export/event_names.h"
#include "analysis/export/event_sink.h"
#include "analysis/model/model.h"
#include "analysis/report/kernel_name.h"
#include "proto/report.pb.h"

namespace idlescope::exporting {
namespace {

class Walk {
 public:
  Walk(const diagnose::Analysis& analysis, EventSink& sink)
      : analysis_(analysis), recording_(analysis.model.recording), sink_(sink) {}

  void run() {
    for (uint32_t p = 0; p < recording_.processes.size(); ++p) process(p);
    sink_.finish();
  }

 private:
  uint64_t declare(Track track) {
    track.id = ++last_track_;
    sink_.track(track);
    return track.id;
  }

  void process(uint32_t index) {
    const read::Process& process = recording_.processes[index];
    const trace::Process& identity = process.header.process();
    pid_ = identity.pid() != 0 ? identity.pid() : index + 1;
    Track track;
    track.kind = Track::Kind::kProcess;
    track.pid = pid_;
    const std::string& path = identity.executable();
    track.name = path.substr(path.rfind('/') + 1);
    if (track.name.empty()) track.name = "process";
    if (identity.has_rank()) track.name += " rank " + std::to_string(identity.rank());
    if (identity.role() == trace::Process::ROLE_LOADER_WORKER) track.name += " loader worker";
    track.rank = static_cast<int32_t>(index);
    process_track_ = declare(track);
    // A call hands its flow to the first op it started.
    first_op_.assign(process.calls.size(), read::kNone);
    for (uint32_t i = 0; i < process.ops.size(); ++i) {
      const uint32_t call = process.ops[i].call;
      if (call != read::kNone && first_op_[call] == read::kNone) first_op_[call] = i;
    }
    flow_base_ = next_flow_;
    next_flow_ += process.calls.size();
    steps(index);
    devices(index);
    threads(process);
    counters(process);
  }

  void steps(uint32_t index) {
    if (analysis_.diagnosis.chosen_process != index || analysis_.diagnosis.step_points.empty())
      return;
    Track track;
    track.parent = process_track_;
    track.name = "steps";
    track.rank = 0;
    const uint64_t id = declare(track);
    int64_t number = 0;
    for (const diagnose::StepPoint& point : analysis_.diagnosis.step_points) {
      const std::string name = "step " + std::to_string(number);
      Slice slice;
      slice.track = id;
      slice.begin_ns = point.begin_ns;
      slice.end_ns = point.begin_ns + point.duration_ns;
      slice.name = name;
      slice.category = "step";
      slice.numbers = {{"step", number}, {"window", point.window_id}};
      if (point.data_wait_ns >= 0) slice.numbers.emplace_back("next() ns", point.data_wait_ns);
      if (!point.mark.empty()) slice.texts.emplace_back("mark", point.mark);
      sink_.slice(slice);
      ++number;
    }
  }

  void devices(uint32_t index) {
    const read::Process& process = recording_.processes[index];
    std::vector<uint64_t> groups(process.devices.size(), 0);
    for (size_t i = 0; i < process.devices.size(); ++i) {
      Track track;
      track.kind = Track::Kind::kGroup;
      track.parent = process_track_;
      track.rank = 10 + static_cast<int32_t>(i);
      track.name = "GPU " + std::to_string(process.devices[i].info.device_id());
      if (!process.devices[i].info.name().empty())
        track.name += " " + process.devices[i].info.name();
      groups[i] = declare(track);
    }
    causes(index, groups);
    std::map<uint32_t, std::vector<uint32_t>> by_stream;
    for (uint32_t i = 0; i < process.ops.size(); ++i) {
      by_stream[process.op_descriptors[process.ops[i].descriptor].stream].push_back(i);
    }
    for (const auto& [stream, ops] : by_stream) {
      Track track;
      track.parent = process_track_;
      track.name = "stream";
      track.rank = 100;
      if (stream < process.streams.size()) {
        const read::Stream& known = process.streams[stream];
        track.name += " " + std::to_string(known.stream_id);
        if (known.device < groups.size()) track.parent = groups[known.device];
        track.rank += static_cast<int32_t>(stream);
      }
      const uint64_t id = declare(track);
      for (const uint32_t i : ops) op(process, i, id);
    }
  }

  void op(const read::Process& process, uint32_t index, uint64_t track) {
    const read::Op& op = process.ops[index];
    const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
    Slice slice;
    slice.track = track;
    slice.begin_ns = op.begin_ns;
    slice.end_ns = op.end_ns;
    const auto [name, added] = kernel_names_.try_emplace(descriptor.name);
    if (added) name->second = report::plain_kernel_name(recording_.strings[descriptor.name]);
    slice.name = name->second;
    if (slice.name.empty()) slice.name = op_kind_name(descriptor.kind);
    slice.category = op_category(descriptor.kind);
    if (op.call != read::kNone && first_op_[op.call] == index) slice.flow_in = flow_base_ + op.call;
    slice.numbers.emplace_back("correlation", op.correlation);
    if (descriptor.bytes > 0)
      slice.numbers.emplace_back("bytes", static_cast<int64_t>(descriptor.bytes));
    if (descriptor.grid[0] > 0) {
      slice.texts.emplace_back("grid", dimensions(descriptor.grid));
      slice.texts.emplace_back("block", dimensions(descriptor.block));
    }
    if (descriptor.graph_id > 0) slice.numbers.emplace_back("graph", descriptor.graph_id);
    sink_.slice(slice);
  }

  // Why the device was without compute, for every ns of its windows.
  void causes(uint32_t index, const std::vector<uint64_t>& groups) {
    const model::Model& model = analysis_.model;
    for (uint32_t d = 0; d < model.devices.size(); ++d) {
      const model::DeviceTimeline& device = model.devices[d];
      if (device.process != index || device.windows.empty()) continue;
      const diagnose::DevicePass pass = diagnose::run_device_pass(model, d);
      Track track;
      track.parent = device.device < groups.size() ? groups[device.device] : process_track_;
      track.name = "why idle";
      const uint64_t id = declare(track);
      for (const model::WindowSpan& window : device.windows) {
        for (const diagnose::GapPiece& piece :
             diagnose::causes_between(model, pass, window.begin_ns, window.end_ns)) {
          Slice slice;
          slice.track = id;
          slice.begin_ns = piece.begin_ns;
          slice.end_ns = piece.end_ns;
          slice.name = report::Leaf_Name(piece.leaf);
          slice.category = "cause";
          slice.texts.emplace_back(
              "evidence", std::string(1, static_cast<char>('A' + static_cast<int>(piece.grade))));
          sink_.slice(slice);
        }
      }
    }
  }

  void threads(const read::Process& process) {
    // Calls and host events of a thread on one track, so that they nest.
    struct Item {
      int64_t begin;
      int64_t end;
      uint32_t index;
      bool call;
    };
    std::map<uint32_t, std::vector<Item>> by_thread;
    for (uint32_t i = 0; i < process.calls.size(); ++i) {
      const read::Call& call = process.calls[i];
      const uint32_t thread = process.call_descriptors[call.descriptor].thread_id;
      by_thread[thread].push_back({call.begin_ns, call.end_ns, i, true});
    }
    for (uint32_t i = 0; i < process.host_events.size(); ++i) {
      const read::HostEvent& event = process.host_events[i];
      if (!is_shown(event.kind)) continue;
      by_thread[event.thread_id].push_back({event.begin_ns, event.end_ns, i, false});
    }
    int32_t order = 1000;
    for (auto& [thread, items] : by_thread) {
      std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
      Track track;
      track.kind = Track::Kind::kThread;
      track.parent = process_track_;
      track.pid = pid_;
      track.tid = thread;
      const auto named = process.thread_names.find(thread);
      track.name = thread == process.main_thread         ? "main thread"
                   : named != process.thread_names.end() ? named->second
                                                         : "thread " + std::to_string(thread);
      track.rank = order++;
      const uint64_t id = declare(track);
      for (const Item& item : items)
        item.call ? call(process, item.index, id) : event(process, item.index, id);
    }
  }

  void call(const read::Process& process, uint32_t index, uint64_t track) {
    const read::Call& call = process.calls[index];
    const read::CallDescriptor& descriptor = process.call_descriptors[call.descriptor];
    Slice slice;
    slice.track = track;
    slice.begin_ns = call.begin_ns;
    slice.end_ns = call.end_ns;
    slice.name = recording_.strings[descriptor.name];
    slice.category = descriptor.driver ? "cuda_driver" : "cuda_runtime";
    if (first_op_[index] != read::kNone) slice.flow_out = flow_base_ + index;
    slice.numbers.emplace_back("correlation", call.correlation);
    if (descriptor.bytes > 0)
      slice.numbers.emplace_back("bytes", static_cast<int64_t>(descriptor.bytes));
    sink_.slice(slice);
  }

  void event(const read::Process& process, uint32_t index, uint64_t track) {
    const read::HostEvent& event = process.host_events[index];
    const std::string name = event_name(event, recording_.strings);
    Slice slice;
    slice.track = track;
    slice.begin_ns = event.begin_ns;
    slice.end_ns = event.end_ns;
    slice.name = name;
    slice.category = event_category(event.kind);
    if (event.batch >= 0) slice.numbers.emplace_back("batch", event.batch);
    if (event.epoch > 0) slice.numbers.emplace_back("epoch", event.epoch);
    sink_.slice(slice);
  }

  void counters(const read::Process& process) {
    std::map<std::pair<int, uint32_t>, std::vector<const read::Counter*>> by_kind;
    for (const read::Counter& counter : process.counters) {
      by_kind[{counter.kind, counter.device}].push_back(&counter);
    }
    int32_t order = 2000;
    for (const auto& [key, samples] : by_kind) {
      Track track = counter_track(static_cast<trace::CounterKind>(key.first));
      if (key.second != read::kNone && process.devices.size() > 1) {
        track.name += " of device " + std::to_string(key.second);
      }
      track.parent = process_track_;
      track.rank = order++;
      const uint64_t id = declare(track);
      for (const read::Counter* sample : samples) sink_.counter(id, sample->time_ns, sample->value);
    }
    // Queue depth of the loader, as next() found it.
    std::vector<const read::HostEvent*> asked;
    for (const read::HostEvent& event : process.host_events) {
      if (event.kind == trace::EVENT_LOADER_NEXT && event.a >= 0) asked.push_back(&event);
    }
    if (asked.empty()) return;
    std::stable_sort(asked.begin(), asked.end(),
                     [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
    Track track;
    track.kind = Track::Kind::kCounter;
    track.name = "batches ready";
    track.parent = process_track_;
    track.rank = order;
    const uint64_t id = declare(track);
    for (const read::HostEvent* event : asked) sink_.counter(id, event->begin_ns, event->a);
  }

  const diagnose::Analysis& analysis_;
  const read::Recording& recording_;
  EventSink& sink_;
  uint64_t last_track_ = 0;
  uint64_t next_flow_ = 1;
  std::unordered_map<uint32_t, std::string> kernel_names_;  // by Strings index
  // Of the process that is walked.
  int64_t pid_ = 0;
  uint64_t process_track_ = 0;
  uint64_t flow_base_ = 0;
  std::vector<uint32_t> first_op_;  // per call
};

}  // namespace

void walk(const diagnose::Analysis& analysis, EventSink& sink) { Walk(analysis, sink).run(); }

}  // namespace idlescope::exporting
