// Fills one Process from facts of another tool's file.
//
// In: devices, streams, ops, calls and host ranges as an importer meets them, in any order.
// Out: `finish` appends a Process that keeps the promises of recording.h: equal descriptors
// are one, one window spans the recording, and its kinds are exactly those that were seen, so
// that later stages know what evidence is missing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/read/anomalies.h"
#include "analysis/read/recording.h"

namespace idlescope::read {

class ImportBuilder {
 public:
  ImportBuilder(Recording& recording, const std::string& path);

  Process& process() { return process_; }
  Strings& strings() { return recording_.strings; }
  Anomalies& anomalies() { return anomalies_; }
  const std::string& path() const { return process_.path; }

  void saw(trace::Kind kind) { kinds_ |= uint64_t{1} << static_cast<unsigned>(kind); }
  bool has_seen(trace::Kind kind) const { return (kinds_ >> static_cast<unsigned>(kind) & 1) != 0; }

  // The recording is known to span this; else it spans its records.
  void window_span(Ns begin_ns, Ns end_ns);
  uint32_t device(uint32_t device_id);
  uint32_t stream(uint32_t context_id, uint32_t stream_id, uint32_t device_id);
  uint32_t op_descriptor(const OpDescriptor& op);
  uint32_t call_descriptor(const CallDescriptor& call);

  // Counted and left out if the span is impossible. Correlation 0: none.
  void add_op(uint32_t descriptor, Ns begin_ns, Ns end_ns, uint32_t correlation);
  void add_call(uint32_t descriptor, Ns begin_ns, Ns end_ns, uint32_t correlation);
  void add_range(std::string_view name, trace::RangeCategory category, uint32_t thread_id,
                 Ns begin_ns, Ns end_ns);
  void add_event(const HostEvent& event);
  void add_overhead(const Overhead& overhead);
  // `wait` is the correlation of a call that waited for the event that call `record` recorded.
  void add_edge(uint32_t record, uint32_t wait) { edges_.push_back({record, wait}); }
  // The call with that correlation worked on that stream, if ops name it too. (The device of
  // synchronisation records is not to be believed: nsys writes 0 for every device.)
  void call_stream(uint32_t correlation, uint32_t context_id, uint32_t stream_id) {
    call_streams_[correlation] = {context_id, stream_id};
  }
  // False, and nothing moved: a time would leave what a time can be.
  bool shift_times(Ns offset_ns);
  void set_versions(uint32_t cupti, uint32_t runtime, uint32_t driver);
  Ns first_ns() const;  // earliest of what was added; 0 if nothing

  size_t device_ops() const { return process_.ops.size(); }

  void finish();

 private:
  struct Edge {
    uint32_t record;
    uint32_t wait;
  };

  void drop_repeated_ops();
  void place_call_streams();
  void place_window();
  void set_range_depths();
  void find_main_thread();

  Recording& recording_;
  Process process_;
  Anomalies anomalies_;
  uint64_t kinds_ = 0;
  bool has_span_ = false;
  Ns span_begin_ns_ = 0;
  Ns span_end_ns_ = 0;
  std::map<uint32_t, uint32_t> devices_;
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint32_t, uint32_t>> streams_;
  std::unordered_map<std::string, uint32_t> op_descriptors_;
  std::unordered_map<std::string, uint32_t> call_descriptors_;
  std::vector<Edge> edges_;
  std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> call_streams_;
  uint64_t bad_spans_ = 0;
  uint32_t cupti_version_ = 0;
  uint32_t runtime_version_ = 0;
  uint32_t driver_version_ = 0;
};

}  // namespace idlescope::read
