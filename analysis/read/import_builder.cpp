#include "analysis/read/import_builder.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "analysis/read/arrange.h"
#include "analysis/read/plausible_time.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

// Descriptor structs have padding, so their bytes are no key; fields one after another are.
class KeyWriter {
 public:
  template <typename T>
  KeyWriter& operator<<(const T& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string& key() { return key_; }

 private:
  std::string key_;
};

std::string key_of(const OpDescriptor& op) {
  KeyWriter writer;
  writer << op.kind << op.copy_kind << op.src_kind << op.dst_kind << op.name << op.device
         << op.context_id << op.stream << op.grid << op.block << op.registers_per_thread
         << op.shared_bytes << op.bytes << op.graph_id << op.graph_node_id;
  return std::move(writer.key());
}

std::string key_of(const CallDescriptor& call) {
  KeyWriter writer;
  writer << call.call_class << call.copy_kind << call.name << call.driver << call.thread_id
         << call.stream << call.bytes << call.object;
  return std::move(writer.key());
}

}  // namespace

ImportBuilder::ImportBuilder(Recording& recording, const std::string& path)
    : recording_(recording) {
  process_.path = path;
  process_.header.set_format_major(1);
  process_.header.mutable_process()->set_role(trace::Process::ROLE_MAIN);
}

void ImportBuilder::window_span(Ns begin_ns, Ns end_ns) {
  if (!plausible_span(begin_ns, end_ns)) return;
  span_begin_ns_ = has_span_ ? std::min(span_begin_ns_, begin_ns) : begin_ns;
  span_end_ns_ = has_span_ ? std::max(span_end_ns_, end_ns) : end_ns;
  has_span_ = true;
}

uint32_t ImportBuilder::device(uint32_t device_id) {
  const auto [entry, inserted] =
      devices_.try_emplace(device_id, static_cast<uint32_t>(process_.devices.size()));
  if (inserted) {
    Device added;
    added.info.set_device_id(device_id);
    process_.devices.push_back(std::move(added));
  }
  return entry->second;
}

uint32_t ImportBuilder::stream(uint32_t context_id, uint32_t stream_id, uint32_t device_id) {
  // Context ids of imports may be absent or equal on several devices.
  auto& on_devices = streams_[{context_id, stream_id}];
  const auto [entry, inserted] =
      on_devices.try_emplace(device_id, static_cast<uint32_t>(process_.streams.size()));
  if (inserted) process_.streams.push_back({context_id, stream_id, device(device_id)});
  return entry->second;
}

uint32_t ImportBuilder::op_descriptor(const OpDescriptor& op) {
  const auto [entry, inserted] = op_descriptors_.try_emplace(
      key_of(op), static_cast<uint32_t>(process_.op_descriptors.size()));
  if (inserted) process_.op_descriptors.push_back(op);
  return entry->second;
}

uint32_t ImportBuilder::call_descriptor(const CallDescriptor& call) {
  const auto [entry, inserted] = call_descriptors_.try_emplace(
      key_of(call), static_cast<uint32_t>(process_.call_descriptors.size()));
  if (inserted) process_.call_descriptors.push_back(call);
  return entry->second;
}

void ImportBuilder::add_op(uint32_t descriptor, Ns begin_ns, Ns end_ns, uint32_t correlation) {
  if (!plausible_span(begin_ns, end_ns)) {
    ++bad_spans_;
    return;
  }
  process_.ops.push_back({begin_ns, end_ns, descriptor, kNone, 0, correlation});
}

void ImportBuilder::add_call(uint32_t descriptor, Ns begin_ns, Ns end_ns, uint32_t correlation) {
  if (!plausible_span(begin_ns, end_ns)) {
    ++bad_spans_;
    return;
  }
  process_.calls.push_back({begin_ns, end_ns, descriptor, 0, correlation, kNone});
}

void ImportBuilder::add_range(std::string_view name, trace::RangeCategory category,
                              uint32_t thread_id, Ns begin_ns, Ns end_ns) {
  HostEvent event;
  event.kind = trace::EVENT_RANGE;
  event.thread_id = thread_id;
  event.begin_ns = begin_ns;
  event.end_ns = end_ns;
  event.a = recording_.strings.add(name);
  event.b = category;
  event.c = 0;
  add_event(event);
}

void ImportBuilder::add_event(const HostEvent& event) {
  if (!plausible_span(event.begin_ns, event.end_ns)) {
    ++bad_spans_;
    return;
  }
  process_.host_events.push_back(event);
}

void ImportBuilder::add_overhead(const Overhead& overhead) {
  if (!plausible_span(overhead.begin_ns, overhead.end_ns)) {
    ++bad_spans_;
    return;
  }
  process_.overheads.push_back(overhead);
}

bool ImportBuilder::shift_times(Ns offset_ns) {
  if (offset_ns == 0) return true;
  if (!plausible_time(offset_ns)) return false;
  // What was added lies within ±kLatestNs: sums do not overflow.
  const auto leaves = [offset_ns](const auto& span) {
    return !plausible_span(span.begin_ns + offset_ns, span.end_ns + offset_ns);
  };
  if (std::any_of(process_.ops.begin(), process_.ops.end(), leaves) ||
      std::any_of(process_.calls.begin(), process_.calls.end(), leaves) ||
      std::any_of(process_.host_events.begin(), process_.host_events.end(), leaves) ||
      std::any_of(process_.overheads.begin(), process_.overheads.end(), leaves) ||
      std::any_of(process_.collectives.begin(), process_.collectives.end(), leaves) ||
      !plausible_span(span_begin_ns_ + offset_ns, span_end_ns_ + offset_ns)) {
    return false;
  }
  for (Op& op : process_.ops) op.begin_ns += offset_ns, op.end_ns += offset_ns;
  for (Call& call : process_.calls) call.begin_ns += offset_ns, call.end_ns += offset_ns;
  for (HostEvent& event : process_.host_events) {
    event.begin_ns += offset_ns;
    event.end_ns += offset_ns;
  }
  for (Overhead& overhead : process_.overheads) {
    overhead.begin_ns += offset_ns;
    overhead.end_ns += offset_ns;
  }
  for (Collective& collective : process_.collectives) {
    collective.begin_ns += offset_ns;
    collective.end_ns += offset_ns;
  }
  span_begin_ns_ += offset_ns;
  span_end_ns_ += offset_ns;
  return true;
}

void ImportBuilder::set_versions(uint32_t cupti, uint32_t runtime, uint32_t driver) {
  cupti_version_ = cupti;
  runtime_version_ = runtime;
  driver_version_ = driver;
}

Ns ImportBuilder::first_ns() const {
  Ns first = std::numeric_limits<Ns>::max();
  for (const Op& op : process_.ops) first = std::min(first, op.begin_ns);
  for (const Call& call : process_.calls) first = std::min(first, call.begin_ns);
  for (const HostEvent& event : process_.host_events) first = std::min(first, event.begin_ns);
  return first == std::numeric_limits<Ns>::max() ? 0 : first;
}

// The same device record twice (a file concatenated with itself, or with an export of a
// second tool) would count its time twice.
void ImportBuilder::drop_repeated_ops() {
  const auto key = [](const Op& op) {
    return std::tie(op.begin_ns, op.end_ns, op.correlation, op.descriptor);
  };
  std::sort(process_.ops.begin(), process_.ops.end(),
            [&key](const Op& a, const Op& b) { return key(a) < key(b); });
  // Zero-length ops at one µs of a coarse clock may be two; without a correlation, too.
  const auto same = [&key](const Op& a, const Op& b) {
    return a.correlation != 0 && a.begin_ns != a.end_ns && key(a) == key(b);
  };
  const auto kept = std::unique(process_.ops.begin(), process_.ops.end(), same);
  anomalies_.add_counted(messages::kImportRepeated, path(),
                         static_cast<uint64_t>(process_.ops.end() - kept));
  process_.ops.erase(kept, process_.ops.end());
}

void ImportBuilder::place_call_streams() {
  if (call_streams_.empty()) return;
  for (Call& call : process_.calls) {
    const auto found = call_streams_.find(call.correlation);
    if (found == call_streams_.end()) continue;
    const auto streams = streams_.find(found->second);
    if (streams == streams_.end() || streams->second.size() != 1) continue;
    CallDescriptor descriptor = process_.call_descriptors[call.descriptor];
    descriptor.stream = streams->second.begin()->second;
    call.descriptor = call_descriptor(descriptor);
  }
}

void ImportBuilder::place_window() {
  if (process_.ops.empty() && process_.calls.empty()) return;
  Ns begin_ns = std::numeric_limits<Ns>::max();
  Ns end_ns = std::numeric_limits<Ns>::min();
  for (const Op& op : process_.ops) {
    begin_ns = std::min(begin_ns, op.begin_ns);
    end_ns = std::max(end_ns, op.end_ns);
  }
  for (const Call& call : process_.calls) {
    begin_ns = std::min(begin_ns, call.begin_ns);
    end_ns = std::max(end_ns, call.end_ns);
  }
  if (has_span_) {
    begin_ns = std::min(begin_ns, span_begin_ns_);
    end_ns = std::max(end_ns, span_end_ns_);
  }
  Window window;
  window.id = 1;
  window.begin_ns = begin_ns;
  window.end_ns = end_ns;
  window.closed = true;
  window.begin.set_window_id(1);
  window.begin.set_begin_ns(begin_ns);
  window.begin.set_clock(trace::WindowBegin::CLOCK_MONOTONIC_HOST);
  window.begin.set_reason("import");
  window.begin.set_cupti_version(cupti_version_);
  window.begin.set_cuda_runtime_version(runtime_version_);
  window.begin.set_cuda_driver_version(driver_version_);
  for (unsigned kind = 1; kind < 64; ++kind) {
    if ((kinds_ >> kind & 1) != 0) window.begin.add_kinds(static_cast<trace::Kind>(kind));
  }
  window.end.set_window_id(1);
  window.end.set_end_ns(end_ns);
  window.end.set_records(process_.ops.size());
  window.end.set_calls(process_.calls.size());
  process_.windows.push_back(std::move(window));
}

void ImportBuilder::set_range_depths() {
  std::vector<Ns> open;
  uint32_t thread_id = 0;
  for (HostEvent& event : process_.host_events) {
    if (event.kind != trace::EVENT_RANGE) continue;
    if (event.thread_id != thread_id) {
      open.clear();
      thread_id = event.thread_id;
    }
    while (!open.empty() && (open.back() < event.end_ns || open.back() <= event.begin_ns)) {
      open.pop_back();
    }
    event.c = static_cast<int64_t>(open.size());
    open.push_back(event.end_ns);
  }
}

// The kernel thread id of a Linux main thread is its pid; other sources get the thread that
// made most calls, else the one with most ranges.
void ImportBuilder::find_main_thread() {
  std::map<uint32_t, uint64_t> counts;
  for (const Call& call : process_.calls) {
    ++counts[process_.call_descriptors[call.descriptor].thread_id];
  }
  if (counts.empty()) {
    for (const HostEvent& event : process_.host_events) ++counts[event.thread_id];
  }
  const uint32_t pid = static_cast<uint32_t>(process_.header.process().pid());
  uint64_t most = 0;
  for (const auto& [thread_id, count] : counts) {
    if (count > most) {
      most = count;
      process_.main_thread = thread_id;
    }
  }
  for (const HostEvent& event : process_.host_events) {
    if (event.thread_id == pid && pid != 0) process_.main_thread = pid;
  }
}

void ImportBuilder::finish() {
  anomalies_.add_counted(messages::kImportBadTimes, path(), bad_spans_, true);
  drop_repeated_ops();
  place_call_streams();
  place_window();
  for (Device& device : process_.devices) {
    if (!device.identity.empty()) continue;
    const trace::Process& identity = process_.header.process();
    const std::string& host = identity.host().empty() ? process_.path : identity.host();
    device.identity = fmt::format("{}/{}/{}", host, identity.pid(), device.info.device_id());
  }
  if (process_.windows.empty()) {
    // Without calls or ops there is no window to belong to; indices stay valid.
    for (Op& op : process_.ops) op.window = kNone;
  }
  arrange(process_);
  if (!process_.windows.empty() && !edges_.empty()) {
    const CallIndex index(process_);
    for (const Edge& edge : edges_) {
      const EventEdge found{index.find(0, edge.record), index.find(0, edge.wait)};
      if (found.wait_call != kNone) process_.event_edges.push_back(found);
    }
  }
  set_range_depths();
  find_main_thread();
  anomalies_.move_into(recording_.anomalies);
  recording_.processes.push_back(std::move(process_));
}

}  // namespace idlescope::read
