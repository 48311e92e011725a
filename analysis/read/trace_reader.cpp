#include "analysis/read/trace_reader.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include "analysis/read/anomalies.h"
#include "analysis/read/arrange.h"
#include "analysis/read/batch_columns.h"
#include "analysis/read/clock_map.h"
#include "analysis/read/host_chunk.h"
#include "analysis/read/plausible_time.h"
#include "analysis/read/recording.h"
#include "analysis/read/trace_batches.h"
#include "analysis/read/trace_tables.h"
#include "analysis/read/zstd_frame.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

using trace::Packet;

constexpr uint32_t kSupportedMajor = 1;
constexpr size_t kWorthAThread = 200'000;  // bytes of calls

// Which of a, b, c hold a name id, per kind (trace.proto).
enum NameFields : unsigned { kNoName = 0, kNameA = 1, kNameB = 2, kNameC = 4 };
unsigned name_fields(trace::HostEventKind kind) {
  switch (kind) {
    case trace::EVENT_LOADER_SITE:
    case trace::EVENT_WORKER_FRAME:
      return kNameA | kNameB;
    case trace::EVENT_WORKER_DATASET:
      return kNameB | kNameC;
    case trace::EVENT_STEP:
      return kNameC;
    case trace::EVENT_LOADER_UNSEEN:
    case trace::EVENT_RANGE:
    case trace::EVENT_MARK:
      return kNameA;
    case trace::EVENT_OTHER_PROFILER:
      return kNameB;
    default:
      return kNoName;
  }
}

class TraceReader {
 public:
  TraceReader(std::string_view bytes, const std::string& path, Recording& recording)
      : bytes_(bytes), recording_(recording), tables_(recording, process_) {
    process_.path = path;
  }

  Expected<void> read() {
    if (auto checked = check_header(); !checked) return checked;
    PacketStream packets(bytes_);
    take_all(packets, /*nested=*/false);
    report_end(packets);
    for (const PacketSlice& slice : gpu_ops_) require_window(slice);
    for (const PacketSlice& slice : host_calls_) require_window(slice);
    tables_.resolve();
    decode_batches();
    decode_host_side();
    bad_host_times_ += map_device_clock(process_);
    arrange(process_);
    finish();
    return {};
  }

 private:
  const std::string& path() const { return process_.path; }

  Expected<void> check_header() {
    PacketStream packets(bytes_);
    const std::optional<PacketSlice> first = packets.next();
    trace::Header header;
    if (!first || first->field != Packet::kHeaderFieldNumber ||
        !header.ParseFromArray(first->body.data(), static_cast<int>(first->body.size()))) {
      return tl::unexpected(
          Fault{messages::kNotATrace,
                {{"path", path()},
                 {"offset", std::to_string(first ? first->offset : packets.end_offset())},
                 {"expected", "a trace header"},
                 {"found", packets.end() == PacketStream::End::kTruncated ? "the end of the file"
                           : packets.end() == PacketStream::End::kReserved
                               ? "only zero bytes (the process ended before it wrote anything)"
                               : "something else"}}});
    }
    if (header.format_major() > kSupportedMajor) {
      return tl::unexpected(
          Fault{messages::kNewerFormat,
                {{"path", path()},
                 {"found", fmt::format("{}.{}", header.format_major(), header.format_minor())},
                 {"supported", fmt::format("{}.x", kSupportedMajor)}}});
    }
    return {};
  }

  void corrupt(uint64_t offset, const std::string& detail) {
    if (corrupt_reported_ < 10) {
      anomalies_.add(messages::kTraceCorrupt,
                     {{"path", path()}, {"offset", std::to_string(offset)}, {"detail", detail}}, 1,
                     true);
    }
    ++corrupt_reported_;
  }

  void take_all(PacketStream& packets, bool nested) {
    while (const std::optional<PacketSlice> packet = packets.next()) take(*packet, nested);
  }

  void take(const PacketSlice& packet, bool nested) {
    switch (packet.field) {
      case Packet::kGpuOpsFieldNumber:
        gpu_ops_.push_back(packet);
        break;
      case Packet::kHostCallsFieldNumber:
        host_calls_.push_back(packet);
        break;
      case Packet::kHostChunkFieldNumber:
        host_chunks_.push_back(packet);
        break;
      case Packet::kHostEventsFieldNumber:
      case Packet::kCountersFieldNumber:
      case Packet::kOverheadsFieldNumber:
      case Packet::kEventEdgesFieldNumber:
      case Packet::kCollectiveFieldNumber:
        host_side_.push_back(packet);
        break;
      case Packet::kZstdTraceFieldNumber:
        if (nested) {
          corrupt(packet.offset, "a compressed packet inside a compressed packet");
        } else {
          take_frame(packet);
        }
        break;
      default:
        if (!tables_.add(packet)) corrupt(packet.offset, "damaged fields");
    }
  }

  void take_frame(const PacketSlice& packet) {
    auto content = expand_zstd(packet.body);
    if (!content) {
      corrupt(packet.offset, content.error());
      return;
    }
    // Slices point into it until the end.
    const std::string& frame = frames_.emplace_back(std::move(*content));
    PacketStream packets(frame, packet.offset);
    while (std::optional<PacketSlice> inner = packets.next()) {
      inner->offset = packet.offset;
      take(*inner, /*nested=*/true);
    }
    if (packets.end() != PacketStream::End::kComplete) {
      corrupt(packet.offset, "the compressed packets inside end early");
    }
  }

  void report_end(const PacketStream& packets) {
    const std::string offset = std::to_string(packets.end_offset());
    cut_ = packets.end() == PacketStream::End::kTruncated ||
           packets.end() == PacketStream::End::kCorrupt;
    if (packets.end() == PacketStream::End::kTruncated) {
      recording_.truncated = true;
      anomalies_.add(messages::kTraceTruncated, {{"path", path()}, {"offset", offset}});
    } else if (packets.end() == PacketStream::End::kCorrupt) {
      recording_.truncated = true;
      anomalies_.add(messages::kTraceCutShort,
                     {{"path", path()},
                      {"offset", offset},
                      {"bytes", std::to_string(bytes_.size() - packets.end_offset())}},
                     1, true);
    }
    if (packets.holes() > 0) {
      anomalies_.add(messages::kTraceHole,
                     {{"path", path()},
                      {"count", std::to_string(packets.holes())},
                      {"offset", std::to_string(packets.first_hole_offset())}},
                     packets.holes());
    }
  }

  void require_window(const PacketSlice& slice) {
    const BatchHead head = peek_batch(slice.body);
    tables_.require_window(head.window_id, head.base_ns);
  }

  void decode_batches() {
    size_t call_bytes = 0;
    for (const PacketSlice& slice : host_calls_) call_bytes += slice.body.size();
    const auto calls = [this] {
      decode_host_calls(host_calls_, tables_, process_.calls, call_counts_);
    };
    if (call_bytes > kWorthAThread) {
      std::thread call_thread(calls);
      decode_gpu_ops(gpu_ops_, tables_, process_.ops, op_counts_);
      call_thread.join();
    } else {
      decode_gpu_ops(gpu_ops_, tables_, process_.ops, op_counts_);
      calls();
    }
  }

  void add_host_event(const HostEvent& event) {
    HostEvent added = event;
    if (!plausible_span(added.begin_ns, added.end_ns)) {
      ++bad_host_times_;
      return;
    }
    // Sums of sizes, CPU times and counts must not overflow either.
    for (int64_t* value : {&added.batch, &added.a, &added.b, &added.c}) {
      if (*value > kLongestSpanNs || *value < -kLongestSpanNs) {
        *value = -1;
        ++odd_values_;
      }
    }
    const unsigned names = name_fields(added.kind);
    if (names & kNameA) added.a = resolve_name(added.a);
    if (names & kNameB) added.b = resolve_name(added.b);
    if (names & kNameC) added.c = resolve_name(added.c);
    process_.host_events.push_back(added);
  }

  // Values that could not be read are -1; both that and 0 mean "no name".
  int64_t resolve_name(int64_t id) { return id <= 0 ? 0 : tables_.name(static_cast<uint64_t>(id)); }

  // Records of host chunks that were copied elsewhere, by where they were.
  std::unordered_map<uint64_t, std::string_view> newest_copies() const {
    std::unordered_map<uint64_t, std::string_view> copies;
    for (const PacketSlice& slice : host_chunks_) {
      const HostChunkPlace place = host_chunk_place(slice.body, slice.cut);
      if (place.moved_from != 0) copies[place.moved_from] = place.records;
    }
    return copies;
  }

  // Where the recorder wrote them; 0: a copy, or not known.
  uint64_t offset_of_records(const PacketSlice& slice) const {
    const HostChunkPlace place = host_chunk_place(slice.body, slice.cut);
    if (place.moved_from != 0 || place.records.empty()) return 0;
    if (place.original_offset != 0) return place.original_offset;
    const auto at = reinterpret_cast<uintptr_t>(place.records.data());
    const auto first = reinterpret_cast<uintptr_t>(bytes_.data());
    return at >= first && at - first < bytes_.size() ? at - first : 0;
  }

  void decode_host_side() {
    std::vector<HostEvent> events;
    auto copies = newest_copies();
    for (const PacketSlice& slice : host_chunks_) {
      events.clear();
      const auto copy = copies.empty() ? copies.end() : copies.find(offset_of_records(slice));
      const HostChunkCounts counts = decode_host_chunk(
          slice.body, slice.cut, events, copy == copies.end() ? std::string_view() : copy->second);
      if (copy != copies.end()) copies.erase(copy);  // one chunk only can have been there
      if (counts.bad_layout) corrupt(slice.offset, "a host chunk of unknown layout");
      unknown_kinds_ += counts.unknown_kinds;
      uncommitted_ += counts.holes;
      for (const HostEvent& event : events) add_host_event(event);
    }
    for (const PacketSlice& slice : host_side_) {
      if (!decode_host_packet(slice)) corrupt(slice.offset, "damaged fields");
    }
  }

  bool decode_host_packet(const PacketSlice& slice);
  bool decode_host_events(std::string_view body);
  void resolve_edges();

  void finish() {
    resolve_edges();
    process_.main_thread = static_cast<uint32_t>(process_.header.process().pid());
    report_batches(op_counts_);
    report_batches(call_counts_);
    anomalies_.add_counted(messages::kTraceColumnsUneven, path(), uneven_overheads_, true);
    anomalies_.add_counted(messages::kTraceTimeReversed, path(),
                           op_counts_.bad_times + call_counts_.bad_times + bad_host_times_, true);
    anomalies_.add_counted(messages::kTraceOddValue, path(), odd_values_, true);
    anomalies_.add_counted(messages::kTraceUnknownKind, path(), unknown_kinds_);
    anomalies_.add_counted(messages::kTraceUncommitted, path(), uncommitted_);
    if (corrupt_reported_ > 10) {
      anomalies_.add_counted(messages::kTraceCorruptMore, path(), corrupt_reported_ - 10, true);
    }
    tables_.report(anomalies_);
    // Loader workers end in _exit: their last event stands for the footer.
    process_.unfinished =
        !cut_ && !process_.has_footer &&
        std::none_of(process_.host_events.begin(), process_.host_events.end(),
                     [](const HostEvent& event) { return event.kind == trace::EVENT_WORKER_EXIT; });
    anomalies_.move_into(recording_.anomalies);
    recording_.processes.push_back(std::move(process_));
    recording_.origin = Origin::kIdlescope;
  }

  void report_batches(const BatchCounts& counts) {
    if (counts.undecodable > 0) corrupt(counts.undecodable_offset, "damaged columns");
    corrupt_reported_ += counts.undecodable > 1 ? counts.undecodable - 1 : 0;
    anomalies_.add_counted(messages::kTraceColumnsUneven, path(), counts.uneven, true);
    anomalies_.add_counted(messages::kTraceDescriptorMissing, path(), counts.missing_descriptors,
                           true);
  }

  struct RawEdge {
    uint32_t window;
    uint32_t record;
    uint32_t wait;
  };

  std::string_view bytes_;
  Recording& recording_;
  Process process_;
  TraceTables tables_;
  Anomalies anomalies_;
  std::deque<std::string> frames_;
  std::vector<PacketSlice> gpu_ops_;
  std::vector<PacketSlice> host_calls_;
  std::vector<PacketSlice> host_chunks_;
  std::vector<PacketSlice> host_side_;
  std::vector<RawEdge> raw_edges_;
  BatchCounts op_counts_;
  BatchCounts call_counts_;
  bool cut_ = false;
  uint64_t bad_host_times_ = 0;
  uint64_t uneven_overheads_ = 0;
  uint64_t odd_values_ = 0;
  uint64_t unknown_kinds_ = 0;
  uint64_t uncommitted_ = 0;
  uint64_t corrupt_reported_ = 0;
};

bool TraceReader::decode_host_events(std::string_view body) {
  trace::HostEventBatch batch;
  if (!batch.ParseFromArray(body.data(), static_cast<int>(body.size()))) return false;
  for (const trace::HostEvent& raw : batch.event()) {
    if (raw.kind() == trace::EVENT_UNUSED || !trace::HostEventKind_IsValid(raw.kind())) {
      ++unknown_kinds_;
      continue;
    }
    HostEvent event;
    event.kind = raw.kind();
    event.thread_id = raw.thread_id();
    event.begin_ns = raw.begin_ns();
    event.end_ns = raw.end_ns();
    event.iterator = raw.iterator();
    event.epoch = raw.epoch();
    event.batch = raw.batch();
    event.a = raw.a();
    event.b = raw.b();
    event.c = raw.c();
    add_host_event(event);
  }
  return true;
}

bool TraceReader::decode_host_packet(const PacketSlice& slice) {
  const auto parse = [&slice](auto& message) {
    return slice.body.size() <= INT32_MAX &&
           message.ParseFromArray(slice.body.data(), static_cast<int>(slice.body.size()));
  };
  switch (slice.field) {
    case Packet::kHostEventsFieldNumber:
      return slice.body.size() <= INT32_MAX && decode_host_events(slice.body);
    case Packet::kCountersFieldNumber: {
      trace::CounterBatch batch;
      if (!parse(batch)) return false;
      for (const trace::CounterSample& raw : batch.sample()) {
        if (!plausible_time(raw.time_ns()) || !plausible_time(raw.value())) {
          ++bad_host_times_;
          continue;
        }
        uint32_t device = kNone;
        for (uint32_t i = 0; i < process_.devices.size(); ++i) {
          if (raw.device_id_plus_1() == process_.devices[i].info.device_id() + 1) device = i;
        }
        process_.counters.push_back({raw.kind(), raw.time_ns(), raw.value(), device});
      }
      return true;
    }
    case Packet::kOverheadsFieldNumber: {
      trace::OverheadBatch batch;
      if (!parse(batch)) return false;
      if (!use_plain_overheads(batch)) ++uneven_overheads_;
      for (const trace::Overhead& raw : batch.overhead()) {
        if (!plausible_span(raw.begin_ns(), raw.end_ns())) {
          ++bad_host_times_;
          continue;
        }
        process_.overheads.push_back({raw.kind(), raw.thread_id(), raw.begin_ns(), raw.end_ns()});
      }
      return true;
    }
    case Packet::kEventEdgesFieldNumber: {
      trace::EventEdgeBatch batch;
      if (!parse(batch)) return false;
      const uint32_t window = tables_.window(batch.window_id());
      for (const trace::EventEdge& raw : batch.edge()) {
        raw_edges_.push_back({window, raw.record_correlation_id(), raw.wait_correlation_id()});
      }
      return true;
    }
    default: {
      trace::Collective raw;
      if (!parse(raw)) return false;
      if (!plausible_span(raw.begin_ns(), raw.end_ns())) {
        ++bad_host_times_;
        return true;
      }
      Collective collective;
      collective.communicator = raw.communicator();
      collective.sequence = raw.sequence();
      collective.name = tables_.name(raw.name_id());
      collective.bytes = raw.bytes();
      collective.ranks = raw.ranks();
      collective.correlation = raw.correlation_id();
      collective.window = tables_.window(raw.window_id());
      collective.thread_id = raw.thread_id();
      collective.begin_ns = raw.begin_ns();
      collective.end_ns = raw.end_ns();
      process_.collectives.push_back(collective);
      return true;
    }
  }
}

void TraceReader::resolve_edges() {
  if (raw_edges_.empty()) return;
  const CallIndex index(process_);
  uint64_t unresolved = 0;
  for (const RawEdge& raw : raw_edges_) {
    const EventEdge edge{index.find(raw.window, raw.record), index.find(raw.window, raw.wait)};
    if (edge.wait_call == kNone) {
      ++unresolved;
      continue;
    }
    process_.event_edges.push_back(edge);  // an unknown producer stays kNone
  }
  anomalies_.add_counted(messages::kTraceEdgeUnresolved, path(), unresolved);
}

}  // namespace

bool looks_like_trace(std::string_view bytes) {
  uint64_t tag = 0;
  uint64_t packet_size = 0;
  uint64_t header_size = 0;
  if (!take_varint(bytes, tag) || tag != 0x0A || !take_varint(bytes, packet_size)) return false;
  if (packet_size == 0) return true;
  const size_t before = bytes.size();
  if (!take_varint(bytes, tag) || tag != 0x0A || !take_varint(bytes, header_size)) return false;
  // The header fills its packet. JSON that begins with "\n{\n" has the same tags, not this.
  return before - bytes.size() + header_size == packet_size;
}

Expected<void> read_trace(std::string_view bytes, const std::string& path, Recording& recording) {
  google::protobuf::SetLogHandler(nullptr);  // damage is counted, not printed
  return TraceReader(bytes, path, recording).read();
}

}  // namespace idlescope::read
