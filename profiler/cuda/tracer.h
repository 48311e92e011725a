// Attaches CUPTI to the running process and detaches it again: one window is one attach.
//
//   attach: subscribe ► our clock ► buffers ► callbacks on ~300 functions ► activity kinds
//   detach: kinds off ► wait for unfinished records ► no thread inside a callback ► flush ►
//           finalize (only that ends CUPTI's cost, recorder.md I.1)
//
// In: commands of the drain thread. Out: outcomes as plain structs; records through
// RecordWriter. All of it runs on the drain thread; only the callbacks (tracer_callbacks.cpp)
// run elsewhere. Every CUPTI result is checked; a failure undoes what was done and is
// returned, never thrown. CUPTI is finalized only if our own subscribe succeeded.
#pragma once

#include <cstdint>

#include "profiler/cuda/cupti_api.h"
#include "profiler/cuda/cupti_versions.h"
#include "profiler/cuda/driver_api.h"
#include "profiler/cuda/record_writer.h"

namespace idlescope::cuda {

enum class AttachStatus : uint8_t {
  kAttached,
  kNoLibrary,   // no libcupti of a supported version
  kTaken,       // another tool holds CUPTI; try again later
  kPermission,  // the driver refuses non-root users (35), or a virtual GPU does
  kFailed       // anything else; `call` and `result` say what
};

struct AttachRequest {
  uint32_t window_id;
  bool full_detail;  // --detail full: also RUNTIME, DRIVER and SYNCHRONIZATION kinds
  bool graph_level;  // one record per graph launch instead of one per node
  const char* reason;
  uint64_t step_number;
  int64_t stood_since_ns;  // the training thread stands still since then; 0: it does not
};

struct AttachOutcome {
  AttachStatus status;
  CUptiResult result;
  const char* call;   // CUPTI function that failed
  char holder[72];    // kTaken: who, if CUPTI tells
  int64_t attach_ns;  // duration
};

// What the caller could do about the launching threads before a finalize.
enum class Halt : uint8_t {
  kStands,  // the training thread stands still, and with it what needs its interpreter
  kRuns,    // nobody could be asked
  kNever    // do not finalize
};

struct DetachRequest {
  bool finalize;  // false: at process exit, or where it is unsafe
  // CUDA graphs are in use: finalize only if the device is idle and no graph is launched
  // meanwhile. The caller holds the launching thread.
  bool device_idle_first;
  int64_t wait_ns;  // limit for unfinished records and for threads inside callbacks
  // Where the host is far ahead of the device, what was recorded ends late: how much longer to
  // wait for it while the job goes on, unless in_a_hurry says that somebody waits for us. 0, null:
  // not longer.
  int64_t more_for_records_ns;
  bool (*in_a_hurry)();
  // Called before a finalize, when everything has been collected: the caller may bring the
  // launching threads to a halt, and says since when they stand (0: they do not). Null: they run.
  // Until they stand the time is the job's, not part of detach_ns.
  Halt (*before_finalize)(void* data, int64_t* stood_since_ns);
  void* before_finalize_data;
  int64_t stood_since_ns;  // it stands already, since then; 0: it does not
  const char* reason;
  uint64_t step_number;
  // In-run accounting, copied into the WindowEnd.
  int64_t inside_step_ns;
  int64_t plain_step_ns;
  uint32_t inside_steps;
  uint32_t plain_steps;
};

struct DetachOutcome {
  bool finalized;
  bool threads_launch;  // not finalized, because several threads launch at once
  CUptiResult result;   // of the first call that failed; CUPTI_SUCCESS
  const char* call;
  int64_t detach_ns;
  uint64_t records;
  uint64_t calls;
};

// The parts of an attach, for docs/overhead.md and the debug log.
struct AttachTimes {
  int64_t subscribe_ns;
  int64_t callbacks_ns;
  int64_t kinds_ns;
};

class Tracer {
 public:
  Tracer(emit::PacketSink sink, emit::NameSource names);

  // Finds libcupti and calls nothing in it. Before the first attach, and before atexit
  // handlers that need CUPTI are registered.
  const CuptiSearch& find_library();

  AttachOutcome attach(const AttachRequest& request);
  DetachOutcome detach(const DetachRequest& request);
  bool attached() const { return window_id_ != 0; }
  // Also between windows, where detaching was not safe: the next attach costs little.
  bool subscribed() const { return subscriber_ != nullptr; }
  uint32_t window_id() const { return window_id_; }

  // Takes over what the callbacks left. `ask_cupti`: also for buffers that are not full.
  void collect(bool ask_cupti);
  // Writes what was taken over.
  void write() { writer_.flush(); }

  const RecordWriter& writer() const { return writer_; }
  const DriverApi& driver() const { return driver_; }
  uint32_t cupti_version() const { return version_; }
  // 13 for libcupti.so.13, before anything of it is called; 0: not said by its name.
  uint32_t library_major() const { return search_.major; }
  VersionFacts facts() const { return version_facts(version_); }
  const AttachTimes& attach_times() const { return times_; }
  const CuptiApi& api() const { return api_; }

 private:
  bool failed(CUptiResult result, const char* call, AttachOutcome* outcome) const;
  bool subscribe(AttachOutcome* outcome);
  bool enable_callbacks(AttachOutcome* outcome);
  bool enable_kinds(const AttachRequest& request, AttachOutcome* outcome);
  void disable_kinds(CUptiResult* first, const char** call);
  void undo_attach(bool fresh);
  bool wait_until_quiet(int64_t until_ns) const;
  bool wait_until_complete(int64_t until_ns, const DetachRequest& request, DetachOutcome* outcome);
  bool nobody_launches(Halt halt) const;

  emit::PacketSink sink_;
  DriverApi driver_;
  RecordWriter writer_;
  CuptiApi api_ = {};
  CuptiSearch search_ = {};
  bool searched_ = false;
  uint32_t version_ = 0;
  uint32_t window_id_ = 0;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  uint64_t kinds_ = 0;           // bit 1 << trace.proto Kind
  uint64_t activity_kinds_ = 0;  // bit 1 << CUpti_ActivityKind
  bool own_clock_ = false;
  AttachTimes times_ = {};
  uint64_t overtaken_before_ = 0;  // launches overtaken before this window
};

// What callbacks saw of graphs and captures; reset by forget_graphs (tests).
struct GraphSightings {
  uint32_t captures_open;
  int64_t capture_begin_ns;  // of the youngest
  uint64_t graph_launches;
  uint64_t graphs_made;
};
GraphSightings graph_sightings();

// After fork, in the child.
void forget_callbacks_after_fork();

}  // namespace idlescope::cuda
