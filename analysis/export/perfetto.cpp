// Perfetto's native format: begin and end packets on tracks, every text interned once.
//
// Slices of a Perfetto track must nest. Where two slices overlap without nesting (clock grain,
// concurrent kernels of one stream) the second goes to a further lane of the same name.
#include <google/protobuf/arena.h>

#include <ostream>
#include <string>
#include <unordered_map>

#include "analysis/export/compressed_packets.h"
#include "analysis/export/event_sink.h"
#include "analysis/export/export.h"
#include "analysis/export/perfetto_subset.pb.h"

namespace idlescope::exporting {
namespace {

constexpr uint32_t kSequence = 1;
constexpr uint32_t kStateCleared = 1;
constexpr uint32_t kNeedsState = 2;

class PerfettoSink : public EventSink {
 public:
  explicit PerfettoSink(std::ostream& out) : packets_(out) {}

  void track(const Track& track) override {
    end_open_slices();  // the slices of the track before are complete
    tracks_[track.id] = track;
    lanes_.clear();
    lanes_.push_back({track.id, {}});
    describe(track, track.id);
  }

  void slice(const Slice& slice) override {
    if (lanes_.empty() || lanes_[0].track != slice.track) {  // back to an earlier track
      end_open_slices();
      lanes_.clear();
      lanes_.push_back({slice.track, {}});
    }
    if (slice.end_ns <= slice.begin_ns) {
      // What has ended by now is closed first: times of a track never run backwards.
      Lane& lane = lanes_[0];
      while (!lane.open_ends.empty() && lane.open_ends.back() <= slice.begin_ns) close_one(&lane);
      begin_event(perfetto::TrackEvent::TYPE_INSTANT, slice.track, slice.begin_ns, slice);
      return;
    }
    for (size_t i = 0;; ++i) {
      if (i == lanes_.size()) add_lane(slice.track);
      Lane& lane = lanes_[i];
      while (!lane.open_ends.empty() && lane.open_ends.back() <= slice.begin_ns) close_one(&lane);
      if (!lane.open_ends.empty() && lane.open_ends.back() < slice.end_ns) continue;
      begin_event(perfetto::TrackEvent::TYPE_SLICE_BEGIN, lane.track, slice.begin_ns, slice);
      lane.open_ends.push_back(slice.end_ns);
      return;
    }
  }

  void counter(uint64_t track, int64_t time_ns, int64_t value) override {
    packet_.Clear();
    perfetto::TrackEvent* event = packet_.mutable_track_event();
    event->set_type(perfetto::TrackEvent::TYPE_COUNTER);
    event->set_track_uuid(track);
    event->set_counter_value(value);
    write(time_ns);
  }

  void finish() override {
    end_open_slices();
    packets_.flush();
  }

 private:
  struct Lane {
    uint64_t track;
    std::vector<int64_t> open_ends;  // innermost last
  };

  void describe(const Track& track, uint64_t uuid) {
    packet_.Clear();
    perfetto::TrackDescriptor* descriptor = packet_.mutable_track_descriptor();
    descriptor->set_uuid(uuid);
    if (track.parent != 0) descriptor->set_parent_uuid(track.parent);
    switch (track.kind) {
      case Track::Kind::kProcess:
        descriptor->mutable_process()->set_pid(static_cast<int32_t>(track.pid));
        descriptor->mutable_process()->set_process_name(track.name);
        descriptor->set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
        break;
      case Track::Kind::kThread:
        descriptor->mutable_thread()->set_pid(static_cast<int32_t>(track.pid));
        descriptor->mutable_thread()->set_tid(track.tid);
        descriptor->mutable_thread()->set_thread_name(track.name);
        break;
      case Track::Kind::kCounter:
        descriptor->set_name(track.name);
        if (track.unit == "bytes") {
          descriptor->mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
        } else if (track.unit == "ns") {
          descriptor->mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_TIME_NS);
        } else if (track.unit.empty()) {
          descriptor->mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_COUNT);
        } else {
          descriptor->mutable_counter()->set_unit_name(track.unit);
        }
        break;
      case Track::Kind::kGroup:
        descriptor->set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
        descriptor->set_name(track.name);
        break;
      case Track::Kind::kSlices:
        descriptor->set_name(track.name);
        break;
    }
    descriptor->set_sibling_order_rank(track.rank);
    write(-1);
  }

  void add_lane(uint64_t track) {
    // A thread has one track in Perfetto: its further lanes are plain tracks beside it.
    Track beside = tracks_[track];
    beside.kind = Track::Kind::kSlices;
    beside.name += " (" + std::to_string(lanes_.size() + 1) + ")";
    const uint64_t uuid = (uint64_t{lanes_.size()} << 40) | track;
    describe(beside, uuid);
    lanes_.push_back({uuid, {}});
  }

  void begin_event(perfetto::TrackEvent::Type type, uint64_t track, int64_t time_ns,
                   const Slice& slice) {
    packet_.Clear();
    perfetto::TrackEvent* event = packet_.mutable_track_event();
    event->set_type(type);
    event->set_track_uuid(track);
    event->set_name_iid(name_id(slice.name));
    event->add_category_iids(category_id(slice.category));
    if (slice.flow_out != 0) event->add_flow_ids(slice.flow_out);
    if (slice.flow_in != 0) event->add_terminating_flow_ids(slice.flow_in);
    for (const auto& [name, value] : slice.numbers) {
      perfetto::DebugAnnotation* note = event->add_debug_annotations();
      note->set_name_iid(note_id(name));
      note->set_int_value(value);
    }
    for (const auto& [name, value] : slice.texts) {
      perfetto::DebugAnnotation* note = event->add_debug_annotations();
      note->set_name_iid(note_id(name));
      note->set_string_value_iid(text_id(value));
    }
    write(time_ns);
  }

  void close_one(Lane* lane) {
    packet_.Clear();
    perfetto::TrackEvent* event = packet_.mutable_track_event();
    event->set_type(perfetto::TrackEvent::TYPE_SLICE_END);
    event->set_track_uuid(lane->track);
    const int64_t end_ns = lane->open_ends.back();
    lane->open_ends.pop_back();
    write(end_ns);
  }

  void end_open_slices() {
    for (Lane& lane : lanes_) {
      while (!lane.open_ends.empty()) close_one(&lane);
    }
  }

  // Ids start at 1; a new one is defined in the packet that uses it first.
  using Ids = std::unordered_map<std::string, uint64_t>;
  template <typename Define>
  static uint64_t id_of(Ids& ids, std::string_view text, const Define& define) {
    const auto found = ids.emplace(std::string(text), ids.size() + 1);
    const std::string& key = found.first->first;
    const uint64_t id = found.first->second;
    if (found.second) {
      auto* defined = define();
      defined->set_iid(id);
      if constexpr (requires { defined->set_str(key); }) {
        defined->set_str(key);
      } else {
        defined->set_name(key);
      }
    }
    return id;
  }
  uint64_t name_id(std::string_view name) {
    return id_of(names_, name,
                 [this] { return packet_.mutable_interned_data()->add_event_names(); });
  }
  uint64_t category_id(std::string_view name) {
    return id_of(categories_, name,
                 [this] { return packet_.mutable_interned_data()->add_event_categories(); });
  }
  uint64_t note_id(std::string_view name) {
    return id_of(notes_, name,
                 [this] { return packet_.mutable_interned_data()->add_debug_annotation_names(); });
  }
  uint64_t text_id(std::string_view text) {
    return id_of(texts_, text, [this] {
      return packet_.mutable_interned_data()->add_debug_annotation_string_values();
    });
  }

  void write(int64_t time_ns) {
    if (time_ns >= 0) packet_.set_timestamp(static_cast<uint64_t>(time_ns));
    packet_.set_trusted_packet_sequence_id(kSequence);
    packet_.set_sequence_flags(first_ ? kStateCleared : kNeedsState);
    first_ = false;
    buffer_.clear();
    packet_.AppendToString(&buffer_);
    packets_.add(buffer_);
  }

  CompressedPackets packets_;
  perfetto::TracePacket packet_;
  std::string buffer_;
  bool first_ = true;
  std::unordered_map<uint64_t, Track> tracks_;
  std::vector<Lane> lanes_;  // of the track that is being written
  Ids names_;
  Ids categories_;
  Ids notes_;
  Ids texts_;
};

}  // namespace

void write_perfetto(const diagnose::Analysis& analysis, std::ostream& out) {
  PerfettoSink sink(out);
  walk(analysis, sink);
}

}  // namespace idlescope::exporting
