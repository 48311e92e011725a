// The rare packets of a trace file: identity, devices, streams, windows, names, descriptors,
// and the lookups from the file's ids to table indices.
//
// In: serialised bodies in any order. Out: after `resolve`, the tables of the Process, sorted
// by id (so packet order does not show), and lookups for the batch decoders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/read/anomalies.h"
#include "analysis/read/id_index.h"
#include "analysis/read/packet_stream.h"
#include "analysis/read/recording.h"

namespace idlescope::read {

class TraceTables {
 public:
  TraceTables(Recording& recording, Process& process) : recording_(recording), process_(process) {}

  // Takes one packet that is not a batch. False: it cannot be decoded.
  bool add(const PacketSlice& packet);
  void resolve();

  // Indices; kNone for ids that the file does not define.
  uint32_t op_descriptor(uint32_t id) const { return op_descriptors_.find(id); }
  uint32_t call_descriptor(uint32_t id) const { return call_descriptors_.find(id); }
  uint32_t window(uint32_t id) const { return windows_.find(id); }
  // Strings index; 0 (and counted) for ids that the file does not define.
  uint32_t name(uint64_t id);
  // A window that batches name and no packet describes; called before decoding them.
  void require_window(uint32_t id, Ns begin_ns);
  bool has_header() const { return headers_ > 0; }
  void report(Anomalies& anomalies) const;

  uint64_t missing_names() const { return missing_names_; }

 private:
  uint32_t device(uint32_t id);
  uint32_t stream(uint32_t context_id, uint32_t stream_id, uint32_t device_id);
  uint32_t stream_of_handle(uint32_t context_id, uint64_t handle) const;
  void resolve_names();
  void resolve_devices();
  void resolve_op_descriptors();
  void resolve_call_descriptors();
  void resolve_windows();

  Recording& recording_;
  Process& process_;
  uint64_t headers_ = 0;
  std::vector<std::pair<uint32_t, std::string>> raw_names_;
  std::vector<trace::Device> raw_devices_;
  std::map<uint32_t, trace::Context> contexts_;
  std::vector<trace::Stream> raw_streams_;
  std::map<uint32_t, trace::WindowBegin> window_begins_;
  std::map<uint32_t, trace::WindowEnd> window_ends_;
  std::map<uint32_t, Ns> undescribed_windows_;
  std::map<uint32_t, trace::GpuOpDescriptor> raw_op_descriptors_;
  std::map<uint32_t, trace::HostCallDescriptor> raw_call_descriptors_;
  IdIndex names_;
  IdIndex op_descriptors_;
  IdIndex call_descriptors_;
  IdIndex windows_;
  std::map<uint32_t, uint32_t> devices_;                       // id -> index
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> streams_;  // (context, id) -> index
  uint64_t bad_times_ = 0;                                     // of windows and clock pairs
  uint64_t repeated_ids_ = 0;
  uint64_t missing_names_ = 0;
  uint64_t unknown_packets_ = 0;
};

}  // namespace idlescope::read
