#include "profiler/host/frame_sampler.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "profiler/emit/process_identity.h"
#include "profiler/host/code_table.h"
#include "profiler/host/fetch_context.h"
#include "profiler/host/host_events.h"

namespace idlescope::host {
namespace {

// PyTrace_… of CPython's pystate.h.
constexpr int kCall = 0;
constexpr int kReturn = 3;

constexpr int kMaxDepth = 256;
constexpr size_t kMaxShares = 64;
constexpr size_t kMaxRecords = 16;  // a sample
constexpr double kShareOfTime = 0.005;
constexpr int64_t kEventCostNs = 250;      // a call or return under the hook, measured
constexpr int64_t kSwitchCostNs = 10'000;  // hook in and out
// From CPython 3.12 on the hook is built on sys.monitoring: each switch rewrites the code
// objects that run (PEP 669).
constexpr int64_t kSwitchCost312Ns = 2'000'000;
constexpr uint32_t kFirstSampledFetch = 2;  // the first one imports and warms caches
constexpr uint32_t kMinPeriod = 16;
constexpr uint32_t kMaxPeriod = 100'000;

struct Frame {
  CodeEntry* code;  // null: unknown (the table is full)
  CodeEntry* user;  // innermost frame of the user's at or above this one
  CodeEntry* stage;
  bool calls_stages;  // a Compose, or plumbing called by one
};

struct Share {
  CodeEntry* user;
  CodeEntry* stage;
  int64_t ns;
};

// One fetch at a time is watched; guarded by `busy`.
struct Sample {
  int depth;
  int64_t last_ns;
  int64_t events;
  Frame frames[kMaxDepth];
  size_t share_count;
  Share shares[kMaxShares];
};

std::atomic<bool> busy{false};
PyObject* get_profile = nullptr;
Sample sample;
CodeTable codes;

// Of this process; a forked child starts anew.
struct Schedule {
  uint32_t generation;
  uint32_t until_next;
  int64_t seen_ns;  // fetch time since the last sample, which the next one stands for
  int64_t fetches;
};
Schedule schedule;

void restart_if_new_process() {
  const uint32_t generation = emit::file_generation();
  if (schedule.generation == generation) return;
  schedule = {generation, kFirstSampledFetch, 0, 0};
  busy.store(false, std::memory_order_relaxed);
}

void charge(int64_t now_ns) {
  const int64_t spent_ns = now_ns - sample.last_ns;
  sample.last_ns = now_ns;
  if (sample.depth == 0 || sample.depth > kMaxDepth || spent_ns <= 0) return;
  const Frame& top = sample.frames[sample.depth - 1];
  for (size_t i = 0; i < sample.share_count; ++i) {
    Share& share = sample.shares[i];
    if (share.user == top.user && share.stage == top.stage) {
      share.ns += spent_ns;
      return;
    }
  }
  if (sample.share_count < kMaxShares) {
    sample.shares[sample.share_count++] = {top.user, top.stage, spent_ns};
  }
}

void enter(PyFrame* frame) {
  if (sample.depth++ >= kMaxDepth) return;
  PyObject* code = python.PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_code");
  CodeEntry* entry = nullptr;
  if (code != nullptr) {
    entry = codes.find_or_add(code);
    python.Py_DecRef(code);  // the table holds it
  } else {
    python.PyErr_Clear();
  }
  Frame& mine = sample.frames[sample.depth - 1];
  const Frame* caller = sample.depth > 1 ? &sample.frames[sample.depth - 2] : nullptr;
  mine = caller == nullptr ? Frame{entry, nullptr, nullptr, false} : *caller;
  mine.code = entry;
  mine.calls_stages = false;
  if (entry == nullptr) return;
  if (entry->is_user) mine.user = entry;
  const bool called_by_compose = caller != nullptr && caller->calls_stages;
  if (entry->is_compose || (called_by_compose && entry->is_plumbing)) {
    mine.calls_stages = true;
  } else if (called_by_compose) {
    mine.stage = entry;
  }
  // The first frame below PyTorch's fetcher: the dataset's method or collate_fn.
  if (mine.stage == nullptr && !entry->is_plumbing) mine.stage = entry;
}

int on_profile_event(PyObject*, PyFrame* frame, int what, PyObject*) {
  ++sample.events;  // calls of C functions too: they cost nearly as much
  if (what != kCall && what != kReturn) return 0;
  charge(emit::monotonic_ns());
  if (what == kCall) {
    enter(frame);
  } else if (sample.depth > 0) {
    --sample.depth;
  }
  return 0;
}

bool slot_is_free() {
  PyObject* current = python.PyObject_CallFunctionObjArgs(get_profile, nullptr);
  if (current == nullptr) {
    python.PyErr_Clear();
    return false;
  }
  const bool free = current == python.none;
  python.Py_DecRef(current);
  return free;
}

int64_t switch_cost_ns() {
  const char* version = python.Py_GetVersion();  // "3.12.1 (…"
  const char* dot = strchr(version, '.');
  const long minor = dot == nullptr ? 0 : strtol(dot + 1, nullptr, 10);
  return minor >= 12 ? kSwitchCost312Ns : kSwitchCostNs;
}

// So many fetches of the usual length pay for a sample with `events` calls and returns.
uint32_t period(int64_t events) {
  const double usual_ns = schedule.fetches == 0 ? 1e6
                                                : static_cast<double>(schedule.seen_ns) /
                                                      static_cast<double>(schedule.fetches);
  const double cost_ns = static_cast<double>(switch_cost_ns() + events * kEventCostNs);
  const double fetches = cost_ns / (kShareOfTime * (usual_ns < 1000 ? 1000 : usual_ns));
  if (fetches < kMinPeriod) return kMinPeriod;
  return fetches > kMaxPeriod ? kMaxPeriod : static_cast<uint32_t>(fetches);
}

}  // namespace

void enable_frame_sampler(PyObject* sys_getprofile) {
  python.Py_IncRef(sys_getprofile);
  get_profile = sys_getprofile;
}

bool begin_frame_sample(int64_t now_ns) {
  if (get_profile == nullptr) return false;
  restart_if_new_process();
  if (schedule.until_next > 0) {
    --schedule.until_next;
    return false;
  }
  if (!slot_is_free() || busy.exchange(true, std::memory_order_acquire)) {
    schedule.until_next = kMinPeriod;
    return false;
  }
  sample.depth = 0;
  sample.events = 0;
  sample.share_count = 0;
  sample.last_ns = now_ns;
  python.PyEval_SetProfile(on_profile_event, nullptr);
  return true;
}

void end_frame_sample(int64_t now_ns) {
  // The fetch may have raised: CPython's audit of this call must not see the error.
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  python.PyErr_Fetch(&type, &value, &traceback);
  python.PyEval_SetProfile(nullptr, nullptr);
  charge(now_ns);
  python.PyErr_Restore(type, value, traceback);
}

void write_frame_sample(int64_t begin_ns, int64_t end_ns) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  python.PyErr_Fetch(&type, &value, &traceback);
  const FetchContext& context = fetch_context();
  int64_t watched_ns = 0;
  for (size_t i = 0; i < sample.share_count; ++i) watched_ns += sample.shares[i].ns;
  const int64_t stands_for_ns = schedule.seen_ns + (end_ns - begin_ns);
  const double scale =
      watched_ns <= 0 ? 0 : static_cast<double>(stands_for_ns) / static_cast<double>(watched_ns);
  for (size_t written = 0; written < kMaxRecords; ++written) {
    Share* largest = nullptr;
    for (size_t i = 0; i < sample.share_count; ++i) {
      Share& share = sample.shares[i];
      if (share.ns > 0 && (largest == nullptr || share.ns > largest->ns)) largest = &share;
    }
    if (largest == nullptr) break;
    CodeEntry* user = largest->user != nullptr ? largest->user : largest->stage;
    if (user == nullptr) {  // PyTorch's own loop around the dataset
      largest->ns = 0;
      continue;
    }
    write_event({.kind = EventKind::kWorkerFrame,
                 .begin_ns = end_ns,
                 .end_ns = end_ns,
                 .iterator = context.iterator,
                 .epoch = context.epoch,
                 .batch = context.batch,
                 .a = CodeTable::name_id(user),
                 .b = largest->stage == nullptr ? 0 : CodeTable::name_id(largest->stage),
                 .c = static_cast<int64_t>(static_cast<double>(largest->ns) * scale)});
    largest->ns = 0;
  }
  schedule.until_next = period(sample.events);
  schedule.seen_ns = 0;
  schedule.fetches = 0;
  busy.store(false, std::memory_order_release);
  python.PyErr_Restore(type, value, traceback);
}

void frame_sampler_saw(int64_t duration_ns) {
  schedule.seen_ns += duration_ns;
  ++schedule.fetches;
}

}  // namespace idlescope::host
