// What was recorded, as plain tables: the output of every reader and importer, the only
// input of the model.
//
// In: packets of trace.proto, Kineto JSON, nsys SQLite. Out: one Recording for all files
// of a report. Times are on the clock of the process that recorded them (device records of
// CLOCK_CUPTI windows are already mapped to it); the model maps processes to one clock.
// Tables hold trace.proto enums where the contract has one. What a source did not record is
// absent here too: Window.begin.kinds lists only what there is.
//
// Invariants (established by the reader, checked in tests): ids are resolved to indices;
// begin_ns <= end_ns; ops are sorted by (begin_ns, end_ns), calls by (thread, begin_ns,
// longer first), host events by (thread, begin_ns, longer first).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proto/fill.h"
#include "proto/message.h"
#include "proto/trace.pb.h"

namespace idlescope::read {

using Ns = int64_t;
inline constexpr uint32_t kNone = UINT32_MAX;

// Interned strings; index 0 is the empty string. Can be moved, not copied.
class Strings {
 public:
  Strings() { add(""); }
  Strings(Strings&&) = default;
  Strings& operator=(Strings&&) = default;
  Strings(const Strings&) = delete;
  Strings& operator=(const Strings&) = delete;

  uint32_t add(std::string_view text);
  const std::string& operator[](uint32_t index) const { return *texts_[index]; }
  size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    using is_transparent = void;  // look up a string_view without a copy
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> index_;
  std::vector<const std::string*> texts_;  // keys of index_, stable addresses
};

struct OpDescriptor {
  trace::OpKind kind{};
  trace::CopyKind copy_kind{};
  trace::MemoryKind src_kind{};
  trace::MemoryKind dst_kind{};
  uint32_t name = 0;        // Strings
  uint32_t device = kNone;  // Process::devices
  uint32_t context_id = 0;
  uint32_t stream = kNone;       // Process::streams
  uint32_t grid[3] = {0, 0, 0};  // 0: unknown
  uint32_t block[3] = {0, 0, 0};
  uint32_t registers_per_thread = 0;
  uint32_t shared_bytes = 0;  // static + dynamic
  uint64_t bytes = 0;         // copies and memsets
  uint32_t graph_id = 0;      // 0: not part of a graph launch
  uint64_t graph_node_id = 0;
};

struct Op {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  uint32_t descriptor = 0;   // Process::op_descriptors
  uint32_t call = kNone;     // Process::calls: outermost call with the same
                             // (window, correlation); kNone: not joined
  uint32_t window = kNone;   // Process::windows
  uint32_t correlation = 0;  // as recorded; 0: none
};

struct CallDescriptor {
  trace::CallClass call_class{};
  trace::CopyKind copy_kind{};
  uint32_t name = 0;    // Strings
  bool driver = false;  // driver API (else runtime)
  uint32_t thread_id = 0;
  uint32_t stream = kNone;  // Process::streams; kNone: none or unknown
  uint64_t bytes = 0;
  uint64_t object = 0;  // event or graph handle
};

struct Call {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  uint32_t descriptor = 0;
  uint32_t window = kNone;
  uint32_t correlation = 0;
  uint32_t parent = kNone;  // enclosing call of the same thread (runtime around
                            // driver); kNone: outermost
};

struct HostEvent {
  trace::HostEventKind kind{};
  uint32_t thread_id = 0;
  Ns begin_ns = 0;
  Ns end_ns = 0;
  uint32_t iterator = 0;
  uint32_t epoch = 0;
  int64_t batch = -1;
  // Per kind, see trace.proto. Values that are name ids there are Strings indices here.
  int64_t a = -1;
  int64_t b = -1;
  int64_t c = -1;
};

struct Overhead {
  trace::OverheadKind kind{};
  uint32_t thread_id = 0;
  Ns begin_ns = 0;
  Ns end_ns = 0;
};

struct Counter {
  trace::CounterKind kind{};
  Ns time_ns = 0;
  int64_t value = 0;
  uint32_t device = kNone;
};

struct Device {
  trace::Device info;    // as recorded
  std::string identity;  // equal for the same GPU in every process
};

struct Stream {
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t device = kNone;
};

struct Window {
  uint32_t id = 0;
  Ns begin_ns = 0;
  Ns end_ns = 0;        // of the last complete record where WindowEnd is missing
  bool closed = false;  // WindowEnd was seen
  trace::WindowBegin begin;
  trace::WindowEnd end;
  bool records(trace::Kind kind) const;  // kind is among begin.kinds

  // The recorder's own comings and goings: half-open stretches around [begin_ns, end_ns) in which
  // a step may have waited for it. A detach goes on after end_ns, and its last part, the
  // finalize, may come late: after the training thread has reached a step mark.
  Ns attach_begin_ns() const { return begin_ns - std::max(begin.attach_ns(), begin.stood_ns()); }
  Ns detach_end_ns() const {
    return end_ns + std::max(end.detach_ns() + end.detach_wait_ns(), end.stood_ns());
  }
  // How much of [from_ns, to_ns) may have been spent on them.
  Ns switching_ns(Ns from_ns, Ns to_ns) const;
};

// Recorded edge: work after `wait_call` on its stream (or the host) waited for what was
// on the stream of `record_call` at that call.
struct EventEdge {
  uint32_t record_call = kNone;
  uint32_t wait_call = kNone;
};

struct Collective {
  uint64_t communicator = 0;
  uint64_t sequence = 0;
  uint32_t name = 0;
  uint64_t bytes = 0;
  uint32_t ranks = 0;
  uint32_t correlation = 0;
  uint32_t window = kNone;
  uint32_t thread_id = 0;
  Ns begin_ns = 0;
  Ns end_ns = 0;
};

struct Process {
  trace::Header header;
  std::string path;  // file it came from
  Ns first_ns = 0;   // extent of everything recorded; 0,0: nothing
  Ns last_ns = 0;
  bool has_footer = false;
  // Its file has no end mark: the process was killed, still runs, or the file was cut between
  // two packets.
  bool unfinished = false;
  trace::Footer footer;
  std::vector<Device> devices;
  std::vector<Stream> streams;
  std::vector<Window> windows;
  std::vector<OpDescriptor> op_descriptors;
  std::vector<CallDescriptor> call_descriptors;
  std::vector<Op> ops;
  std::vector<Call> calls;
  std::vector<HostEvent> host_events;
  std::vector<Overhead> overheads;
  std::vector<Counter> counters;
  std::vector<EventEdge> event_edges;
  std::vector<Collective> collectives;
  std::vector<trace::ClockPair> clock_pairs;  // also the header's; sorted by monotonic_ns
  std::vector<trace::Loss> losses;
  std::vector<trace::Status> statuses;
  std::unordered_map<uint32_t, std::string> thread_names;
  uint32_t main_thread = 0;  // kernel thread id; 0: unknown
};

// Named, counted oddity of the input; shown to the user, never silent.
struct Anomaly {
  messages::Message message;
  messages::Values values;
  uint64_t count = 1;
  bool affects_conclusions = false;
};

enum class Origin : uint8_t { kIdlescope, kKineto, kNsys };

struct Recording {
  Origin origin = Origin::kIdlescope;
  std::vector<std::string> paths;
  std::vector<Process> processes;
  Strings strings;
  std::vector<Anomaly> anomalies;
  uint64_t input_bytes = 0;
  bool truncated = false;
  // Smallest difference of two times the source can express; 1 for our own files, 1000
  // for imports with whole-microsecond stamps.
  Ns grain_ns = 1;
};

}  // namespace idlescope::read
