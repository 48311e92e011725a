#include "analysis/read/trace_tables.h"

#include <algorithm>
#include <string>

#include "proto/messages.h"

#include <fmt/format.h>

#include "analysis/read/plausible_time.h"

namespace idlescope::read {
namespace {

using trace::Packet;

template <typename T>
bool parse(std::string_view body, T& out) {
  return body.size() <= INT32_MAX && out.ParseFromArray(body.data(), static_cast<int>(body.size()));
}

template <typename T>
bool parse_into(std::string_view body, std::vector<T>& out) {
  T value;
  if (!parse(body, value)) return false;
  out.push_back(std::move(value));
  return true;
}

std::string identity_of(const trace::Device& device, const trace::Process& process) {
  if (!device.uuid().empty()) {
    std::string text = "GPU-";
    for (const char byte : device.uuid()) {
      text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return text;
  }
  if (!device.pci_bus_id().empty()) return process.host() + "/" + device.pci_bus_id();
  return fmt::format("{}/{}/{}", process.host(), process.pid(), device.device_id());
}

bool plausible(const trace::ClockPair& pair) {
  return plausible_time(pair.monotonic_ns()) && plausible_time(pair.realtime_ns()) &&
         plausible_time(pair.cupti_ns());
}

// cudaStreamLegacy and cudaStreamPerThread, the two special handle values (driver_types.h).
constexpr uint64_t kLegacyStreamHandle = 1;
constexpr uint64_t kPerThreadStreamHandle = 2;

}  // namespace

bool TraceTables::add(const PacketSlice& packet) {
  switch (packet.field) {
    case Packet::kHeaderFieldNumber: {
      trace::Header header;
      if (!parse(packet.body, header)) return false;
      // Compacted files repeat nothing; a second header is odd, and the first one counts.
      if (headers_++ != 0) return true;
      if (header.has_clock() && !plausible(header.clock())) {
        header.clear_clock();
        ++bad_times_;
      }
      process_.header = std::move(header);
      return true;
    }
    case Packet::kDeviceFieldNumber:
      return parse_into(packet.body, raw_devices_);
    case Packet::kContextFieldNumber: {
      trace::Context context;
      if (!parse(packet.body, context)) return false;
      contexts_.try_emplace(context.context_id(), context);
      return true;
    }
    case Packet::kStreamFieldNumber:
      return parse_into(packet.body, raw_streams_);
    case Packet::kWindowBeginFieldNumber: {
      trace::WindowBegin begin;
      if (!parse(packet.body, begin)) return false;
      const uint32_t id = begin.window_id();
      if (!window_begins_.try_emplace(id, std::move(begin)).second) ++repeated_ids_;
      return true;
    }
    case Packet::kWindowEndFieldNumber: {
      trace::WindowEnd end;
      if (!parse(packet.body, end)) return false;
      const uint32_t id = end.window_id();
      if (!window_ends_.try_emplace(id, std::move(end)).second) ++repeated_ids_;
      return true;
    }
    case Packet::kNamesFieldNumber: {
      trace::NameTable table;
      if (!parse(packet.body, table)) return false;
      for (trace::NameTable::Entry& entry : *table.mutable_entry()) {
        raw_names_.emplace_back(entry.id(), std::move(*entry.mutable_text()));
      }
      return true;
    }
    case Packet::kDescriptorsFieldNumber: {
      trace::DescriptorTable table;
      if (!parse(packet.body, table)) return false;
      for (trace::GpuOpDescriptor& op : *table.mutable_gpu_op()) {
        const uint32_t id = op.id();
        if (!raw_op_descriptors_.try_emplace(id, std::move(op)).second) ++repeated_ids_;
      }
      for (trace::HostCallDescriptor& call : *table.mutable_host_call()) {
        const uint32_t id = call.id();
        if (!raw_call_descriptors_.try_emplace(id, std::move(call)).second) ++repeated_ids_;
      }
      return true;
    }
    case Packet::kClockPairFieldNumber: {
      trace::ClockPair pair;
      if (!parse(packet.body, pair)) return false;
      if (plausible(pair)) {
        process_.clock_pairs.push_back(std::move(pair));
      } else {
        ++bad_times_;
      }
      return true;
    }
    case Packet::kLossFieldNumber:
      return parse_into(packet.body, process_.losses);
    case Packet::kStatusFieldNumber:
      return parse_into(packet.body, process_.statuses);
    case Packet::kFooterFieldNumber:
      if (!parse(packet.body, process_.footer)) return false;
      process_.has_footer = true;
      return true;
    case Packet::kThreadNameFieldNumber: {
      trace::ThreadName thread;
      if (!parse(packet.body, thread)) return false;
      process_.thread_names[thread.thread_id()] = thread.name();
      return true;
    }
    case Packet::kGraphNodesFieldNumber:
      // Edges inside captured graphs: nothing downstream uses them yet, the launch's
      // correlation and the node ids of the ops are enough.
      return true;
    default:
      ++unknown_packets_;  // of a newer minor version
      return true;
  }
}

uint32_t TraceTables::name(uint64_t id) {
  if (id == 0) return 0;
  const uint32_t index = names_.find(id);
  if (index != IdIndex::kAbsent) return index;
  ++missing_names_;
  return 0;
}

void TraceTables::require_window(uint32_t id, Ns begin_ns) {
  const auto [entry, inserted] = undescribed_windows_.try_emplace(id, begin_ns);
  if (!inserted) entry->second = std::min(entry->second, begin_ns);
}

uint32_t TraceTables::device(uint32_t id) {
  const auto [entry, inserted] =
      devices_.try_emplace(id, static_cast<uint32_t>(process_.devices.size()));
  if (inserted) {
    Device added;
    added.info.set_device_id(id);
    added.identity = identity_of(added.info, process_.header.process());
    process_.devices.push_back(std::move(added));
  }
  return entry->second;
}

uint32_t TraceTables::stream(uint32_t context_id, uint32_t stream_id, uint32_t device_id) {
  const auto [entry, inserted] =
      streams_.try_emplace({context_id, stream_id}, static_cast<uint32_t>(process_.streams.size()));
  if (inserted) process_.streams.push_back({context_id, stream_id, kNone});
  Stream& added = process_.streams[entry->second];
  if (added.device == kNone) added.device = device(device_id);
  return entry->second;
}

uint32_t TraceTables::stream_of_handle(uint32_t context_id, uint64_t handle) const {
  if (handle == 0 || handle == kLegacyStreamHandle) {
    const auto context =
        context_id == 0 && contexts_.size() == 1 ? contexts_.begin() : contexts_.find(context_id);
    if (context != contexts_.end()) {
      const auto found = streams_.find({context->first, context->second.null_stream_id()});
      if (found != streams_.end()) return found->second;
    }
    if (handle == kLegacyStreamHandle) return kNone;
  }
  if (handle == kPerThreadStreamHandle) return kNone;
  const trace::Stream* best = nullptr;
  bool ambiguous = false;
  for (const trace::Stream& candidate : raw_streams_) {
    if (candidate.handle() != handle) continue;
    if (context_id != 0 && candidate.context_id() != context_id) continue;
    if (best != nullptr && candidate.context_id() != best->context_id()) ambiguous = true;
    // Handles are reused after a stream is destroyed; the latest owner is the likeliest.
    if (best == nullptr || candidate.seen_ns() > best->seen_ns()) best = &candidate;
  }
  if (best == nullptr || ambiguous) return kNone;
  const auto found = streams_.find({best->context_id(), best->stream_id()});
  return found == streams_.end() ? kNone : found->second;
}

void TraceTables::resolve_names() {
  std::sort(raw_names_.begin(), raw_names_.end());
  for (const auto& [id, text] : raw_names_) {
    if (id == 0 || !names_.add(id, recording_.strings.add(text))) ++repeated_ids_;
  }
  raw_names_ = {};
}

void TraceTables::resolve_devices() {
  std::stable_sort(
      raw_devices_.begin(), raw_devices_.end(),
      [](const trace::Device& a, const trace::Device& b) { return a.device_id() < b.device_id(); });
  for (trace::Device& raw : raw_devices_) {
    const uint32_t id = raw.device_id();
    if (!devices_.try_emplace(id, static_cast<uint32_t>(process_.devices.size())).second) {
      ++repeated_ids_;
      continue;
    }
    Device added;
    added.identity = identity_of(raw, process_.header.process());
    added.info = std::move(raw);
    process_.devices.push_back(std::move(added));
  }
  std::sort(raw_streams_.begin(), raw_streams_.end(),
            [](const trace::Stream& a, const trace::Stream& b) {
              return std::make_tuple(a.context_id(), a.stream_id(), a.seen_ns(), a.handle()) <
                     std::make_tuple(b.context_id(), b.stream_id(), b.seen_ns(), b.handle());
            });
  for (const trace::Stream& raw : raw_streams_) {
    const auto context = contexts_.find(raw.context_id());
    const auto [entry, inserted] = streams_.try_emplace(
        {raw.context_id(), raw.stream_id()}, static_cast<uint32_t>(process_.streams.size()));
    if (!inserted) continue;
    const uint32_t on_device =
        context == contexts_.end() ? kNone : device(context->second.device_id());
    process_.streams.push_back({raw.context_id(), raw.stream_id(), on_device});
  }
}

void TraceTables::resolve_op_descriptors() {
  process_.op_descriptors.reserve(raw_op_descriptors_.size());
  for (const auto& [id, raw] : raw_op_descriptors_) {
    OpDescriptor op;
    op.kind = raw.kind();
    op.copy_kind = raw.copy_kind();
    op.src_kind = raw.src_kind();
    op.dst_kind = raw.dst_kind();
    op.name = name(raw.name_id());
    op.device = device(raw.device_id());
    op.context_id = raw.context_id();
    op.stream = stream(raw.context_id(), raw.stream_id(), raw.device_id());
    op.grid[0] = raw.grid_x();
    op.grid[1] = raw.grid_y();
    op.grid[2] = raw.grid_z();
    op.block[0] = raw.block_x();
    op.block[1] = raw.block_y();
    op.block[2] = raw.block_z();
    op.registers_per_thread = raw.registers_per_thread();
    op.shared_bytes = raw.static_shared_bytes() + raw.dynamic_shared_bytes();
    op.bytes = raw.bytes();
    op.graph_id = raw.graph_id();
    op.graph_node_id = raw.graph_node_id();
    op_descriptors_.add(id, static_cast<uint32_t>(process_.op_descriptors.size()));
    process_.op_descriptors.push_back(op);
  }
}

void TraceTables::resolve_call_descriptors() {
  process_.call_descriptors.reserve(raw_call_descriptors_.size());
  for (const auto& [id, raw] : raw_call_descriptors_) {
    CallDescriptor call;
    call.call_class = raw.call_class();
    call.copy_kind = raw.copy_kind();
    call.name = name(raw.name_id());
    call.driver = raw.domain() == trace::HostCallDescriptor::DOMAIN_DRIVER;
    call.thread_id = raw.thread_id();
    call.stream = stream_of_handle(raw.context_id(), raw.stream_handle());
    call.bytes = raw.bytes();
    call.object = raw.object();
    call_descriptors_.add(id, static_cast<uint32_t>(process_.call_descriptors.size()));
    process_.call_descriptors.push_back(call);
  }
}

void TraceTables::resolve_windows() {
  for (const auto& [id, begin_ns] : undescribed_windows_) {
    if (window_begins_.count(id) != 0) continue;
    trace::WindowBegin begin;
    begin.set_window_id(id);
    begin.set_begin_ns(begin_ns);
    window_begins_.emplace(id, std::move(begin));
  }
  for (auto& [id, begin] : window_begins_) {
    Window window;
    window.id = id;
    if (plausible_time(begin.begin_ns())) {
      window.begin_ns = begin.begin_ns();
    } else {
      begin.set_begin_ns(0);
      ++bad_times_;
    }
    window.end_ns = window.begin_ns;
    window.begin = std::move(begin);
    if (const auto end = window_ends_.find(id); end != window_ends_.end()) {
      window.closed = plausible_span(window.begin_ns, end->second.end_ns());
      if (window.closed) window.end_ns = end->second.end_ns();
      window.end = std::move(end->second);
    }
    windows_.add(id, static_cast<uint32_t>(process_.windows.size()));
    process_.windows.push_back(std::move(window));
  }
}

void TraceTables::resolve() {
  if (process_.header.has_clock()) process_.clock_pairs.push_back(process_.header.clock());
  resolve_names();
  resolve_devices();
  resolve_op_descriptors();
  resolve_call_descriptors();
  resolve_windows();
}

void TraceTables::report(Anomalies& anomalies) const {
  const std::string& path = process_.path;
  anomalies.add_counted(messages::kTraceUnknownPacket, path, unknown_packets_);
  anomalies.add_counted(messages::kTraceNameMissing, path, missing_names_);
  anomalies.add_counted(messages::kTraceIdRepeated, path, repeated_ids_);
  anomalies.add_counted(messages::kTraceOddValue, path, bad_times_, true);
  if (headers_ > 1) {
    anomalies.add_counted(messages::kTraceHeaderRepeated, path, headers_ - 1, true);
  }
  uint64_t undescribed = 0;
  for (const auto& [id, begin_ns] : undescribed_windows_) {
    if (process_.windows[windows_.find(id)].begin.kinds_size() == 0) ++undescribed;
  }
  anomalies.add_counted(messages::kTraceWindowMissing, path, undescribed, true);
}

}  // namespace idlescope::read
