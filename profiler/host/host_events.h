// One function to write a host event, and who listens to the ones that steer the recorder.
//
// In: what the Python bridge, NVTX, the linked API saw. Out: a record in the mapped file.
// Application threads; no allocation, no lock on the fast path, no exception.
#pragma once

#include <cstdint>

#include "profiler/emit/trace_file.h"

namespace idlescope::host {

// HostEventKind of trace.proto, the ones that are written here.
enum class EventKind : uint32_t {
  kLoaderCreate = 1,
  kLoaderNext = 2,
  kLoaderWait = 3,
  kLoaderEnd = 4,
  kLoaderReset = 5,
  kLoaderIndex = 6,
  kLoaderShutdown = 7,
  kLoaderWorkerStarted = 8,
  kLoaderSite = 9,
  kLoaderUnseen = 10,
  kLoaderPinInline = 11,
  kWorkerLoop = 32,
  kWorkerIndexWait = 33,
  kWorkerFetch = 34,
  kWorkerFetchCpu = 35,
  kWorkerFetchIo = 36,
  kWorkerPut = 37,
  kWorkerPickle = 38,
  kWorkerExit = 39,
  kWorkerFrame = 40,
  kWorkerEmpty = 41,
  kWorkerDataset = 42,
  kPinWait = 48,
  kPinCopy = 49,
  kPinPut = 50,
  kStep = 64,
  kRange = 65,
  kMark = 66,
  kGc = 67,
  kCheckpoint = 68,
  kOtherProfiler = 69,
  kCapture = 70,
  kThreadCpu = 71,
  kNotebookCell = 72,
};

struct Event {
  EventKind kind;
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t iterator = 0;
  uint32_t epoch = 0;
  int64_t batch = -1;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

inline bool write_event(const Event& event) {
  emit::HostRecord* record = emit::reserve_host_record();
  if (record == nullptr) return false;
  record->begin_ns = event.begin_ns;
  record->end_ns = event.end_ns;
  record->iterator = event.iterator;
  record->epoch = event.epoch;
  record->batch = event.batch;
  record->a = event.a;
  record->b = event.b;
  record->c = event.c;
  emit::commit_host_record(record, static_cast<uint32_t>(event.kind));
  return true;
}

// What steers the rest of the recorder; set once by session/, null otherwise.
struct Listener {
  void (*step)(int64_t now_ns, bool from_loader);
  void (*capture)(bool begins);
  void (*compile)(bool begins);
  void (*other_profiler)(bool starts);
  bool sample_frames;  // whether frame_sampler.h may watch fetches
};
void set_listener(const Listener& listener);
const Listener& listener();

// Steps seen so far in this process, by whatever source.
uint64_t step_count();
// Writes EVENT_STEP, counts it and tells the listener. `source` is a StepSource.
void step_ended(int64_t now_ns, int64_t source, uint32_t label);
// A delivered batch: tells the listener only (no EVENT_STEP).
void batch_delivered(int64_t now_ns);

}  // namespace idlescope::host
