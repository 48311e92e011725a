#include "profiler/cuda/tracer.h"

#include <sched.h>
#include <time.h>

#include <cstring>

#include "profiler/cuda/activity_buffers.h"
#include "profiler/cuda/call_log.h"
#include "profiler/cuda/call_table.h"
#include "profiler/cuda/clock.h"
#include "profiler/cuda/tracer_callbacks.h"
#include "profiler/emit/device_packets.h"

namespace idlescope::cuda {
namespace {

constexpr uint32_t kFreeChunks = 8;
constexpr int64_t kPollNs = 500'000;

// Threads launch at once if more than one launch in this many was overtaken by another thread's:
// a watchdog that asks for an event ten times a second does not count.
constexpr uint64_t kOvertakenOneIn = 200;
// Nobody launches if no call came for kStillNs; given up on after kStillLimitNs, for which the
// training thread stands.
constexpr int64_t kStillNs = 300'000;
constexpr int64_t kStillLimitNs = 5'000'000;

void pause_ns(int64_t duration_ns) {
  const timespec duration = {0, static_cast<long>(duration_ns)};
  nanosleep(&duration, nullptr);
}

bool is_permission(CUptiResult result) {
  return result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
         result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
}

// The evidence that callbacks give, as trace.proto Kinds.
constexpr uint64_t kCallKinds =
    (uint64_t{1} << emit::kKindCallLaunch) | (uint64_t{1} << emit::kKindCallCopy) |
    (uint64_t{1} << emit::kKindCallSync) | (uint64_t{1} << emit::kKindCallAlloc) |
    (uint64_t{1} << emit::kKindCallModule) | (uint64_t{1} << emit::kKindCallGraph) |
    (uint64_t{1} << emit::kKindCallEvent);

}  // namespace

Tracer::Tracer(emit::PacketSink sink, emit::NameSource names)
    : sink_(sink), writer_(sink, names, &driver_) {}

const CuptiSearch& Tracer::find_library() {
  if (!searched_) {
    searched_ = true;
    driver_.load();
    search_ = load_cupti(0, &api_);
  }
  return search_;
}

bool Tracer::failed(CUptiResult result, const char* call, AttachOutcome* outcome) const {
  if (result == CUPTI_SUCCESS) return false;
  outcome->result = result;
  outcome->call = call;
  outcome->status = is_permission(result) ? AttachStatus::kPermission
                    : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                        ? AttachStatus::kTaken
                        : AttachStatus::kFailed;
  return true;
}

bool Tracer::subscribe(AttachOutcome* outcome) {
  if (api_.Subscribe_v2 != nullptr) {
    CUpti_SubscriberParams params = {};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "idlescope";
    params.oldSubscriberName = outcome->holder;
    params.oldSubscriberSize = sizeof outcome->holder;
    return !failed(api_.Subscribe_v2(&subscriber_, &on_cuda_call, nullptr, &params),
                   "cuptiSubscribe_v2", outcome);
  }
  return !failed(api_.Subscribe(&subscriber_, &on_cuda_call, nullptr), "cuptiSubscribe", outcome);
}

bool Tracer::enable_callbacks(AttachOutcome* outcome) {
  uint32_t count = 0;
  const CallFunction* functions = call_functions(&count);
  uint32_t enabled = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const CUptiResult result =
        api_.EnableCallback(1, subscriber_, functions[i].domain, functions[i].id);
    if (result == CUPTI_SUCCESS) {
      ++enabled;
    } else if (result != CUPTI_ERROR_INVALID_PARAMETER) {
      // INVALID_PARAMETER: a function that this older CUPTI does not know.
      return !failed(result, "cuptiEnableCallback", outcome);
    }
  }
  if (enabled == 0) return !failed(CUPTI_ERROR_INVALID_PARAMETER, "cuptiEnableCallback", outcome);
  return true;
}

bool Tracer::enable_kinds(const AttachRequest& request, AttachOutcome* outcome) {
  struct Wanted {
    CUpti_ActivityKind kind;
    uint32_t trace_kind;
    bool needed;
    bool when;
  };
  const Wanted wanted[] = {
      {CUPTI_ACTIVITY_KIND_MEMCPY, emit::kKindMemcpy, true, true},
      {CUPTI_ACTIVITY_KIND_MEMCPY2, emit::kKindUnknown, false, true},
      {CUPTI_ACTIVITY_KIND_MEMSET, emit::kKindMemset, true, true},
      {CUPTI_ACTIVITY_KIND_OVERHEAD, emit::kKindOverhead, false, true},
      {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, emit::kKindGraphTrace, false, request.graph_level},
      {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, emit::kKindUnknown, false, request.full_detail},
      {CUPTI_ACTIVITY_KIND_DRIVER, emit::kKindUnknown, false, request.full_detail},
      {CUPTI_ACTIVITY_KIND_RUNTIME, emit::kKindUnknown, false, request.full_detail},
      // Last: from here on launches are slower.
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, emit::kKindKernel, true, true},
  };
  for (const Wanted& entry : wanted) {
    if (!entry.when) continue;
    const CUptiResult result = api_.ActivityEnable(entry.kind);
    if (result == CUPTI_SUCCESS) {
      activity_kinds_ |= uint64_t{1} << entry.kind;
      if (entry.trace_kind != emit::kKindUnknown) kinds_ |= uint64_t{1} << entry.trace_kind;
    } else if (entry.needed || is_permission(result)) {
      return !failed(result, "cuptiActivityEnable", outcome);
    }
  }
  if ((kinds_ & (uint64_t{1} << emit::kKindGraphTrace)) == 0) {
    kinds_ |= uint64_t{1} << emit::kKindGraphNode;
  }
  return true;
}

AttachOutcome Tracer::attach(const AttachRequest& request) {
  AttachOutcome outcome = {};
  outcome.status = AttachStatus::kNoLibrary;
  if (!find_library().found) return outcome;
  const int64_t start_ns = monotonic_ns();
  if (version_ == 0) {
    if (api_.GetVersion(&version_) != CUPTI_SUCCESS) version_ = 0;
    if (!facts().usable) return outcome;
  }
  CallLog& log = call_log();
  log.init();
  log.keep_free(kFreeChunks);
  log.take_lost();
  overtaken_before_ = log.overtaken();
  kinds_ = kCallKinds;
  activity_kinds_ = 0;
  outcome.status = AttachStatus::kAttached;

  // A window that could not be finalized left us subscribed, with clock, buffers and callbacks
  // in place: only the kinds are switched on again, while other threads may launch.
  const bool fresh = subscriber_ == nullptr;
  if (fresh && !subscribe(&outcome)) {
    subscriber_ = nullptr;
    return outcome;
  }
  if (fresh) {
    if (api_.SetThreadIdType != nullptr) {
      api_.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    }
    // Before any kind is enabled, and again after every finalize (recorder.md I.2).
    own_clock_ = api_.ActivityRegisterTimestampCallback != nullptr &&
                 api_.ActivityRegisterTimestampCallback(&host_timestamp) == CUPTI_SUCCESS;
  }
  const int64_t subscribed_ns = monotonic_ns();
  writer_.start_window(request.window_id, version_);
  // Calls before kernels: a kernel without its call would look unjoined.
  bool good =
      !fresh || !failed(api_.ActivityRegisterCallbacks(&on_buffer_requested, &on_buffer_completed),
                        "cuptiActivityRegisterCallbacks", &outcome);
  if (good) {
    record_both_domains(request.full_detail);
    open_call_window(request.window_id);
    good = !fresh || enable_callbacks(&outcome);
  }
  const int64_t callbacks_ns = monotonic_ns();
  keep_calls_from(callbacks_ns);
  good = good && enable_kinds(request, &outcome);
  const int64_t begin_ns = monotonic_ns();
  if (!good) {
    undo_attach(fresh);
    return outcome;
  }
  window_id_ = request.window_id;
  times_ = {subscribed_ns - start_ns, callbacks_ns - subscribed_ns, begin_ns - callbacks_ns};
  outcome.attach_ns = begin_ns - start_ns;

  emit::WindowBeginFact fact = {};
  fact.window_id = request.window_id;
  fact.begin_ns = begin_ns;
  fact.cupti_version = version_;
  fact.cuda_driver_version = driver_.driver_version();
  fact.clock = own_clock_ ? emit::kClockMonotonicHost : emit::kClockCupti;
  fact.kinds = kinds_;
  fact.attach_ns = outcome.attach_ns;
  fact.reason = request.reason;
  fact.step_number = request.step_number;
  if (request.stood_since_ns != 0) fact.stood_ns = begin_ns - request.stood_since_ns;
  emit::write_window_begin(sink_, fact);
  if (!own_clock_) {
    uint64_t cupti_ns = 0;
    const int64_t before_ns = monotonic_ns();
    api_.GetTimestamp(&cupti_ns);
    const int64_t after_ns = monotonic_ns();
    emit::write_cupti_clock(sink_, window_id_, before_ns + (after_ns - before_ns) / 2,
                            after_ns - before_ns, static_cast<int64_t>(cupti_ns));
  }
  return outcome;
}

void Tracer::disable_kinds(CUptiResult* first, const char** call) {
  for (uint32_t kind = 0; kind < 64; ++kind) {
    if (((activity_kinds_ >> kind) & 1) == 0) continue;
    const CUptiResult result = api_.ActivityDisable(static_cast<CUpti_ActivityKind>(kind));
    if (result != CUPTI_SUCCESS && *first == CUPTI_SUCCESS) {
      *first = result;
      *call = "cuptiActivityDisable";
    }
  }
  activity_kinds_ = 0;
}

void Tracer::undo_attach(bool fresh) {
  CUptiResult ignored = CUPTI_SUCCESS;
  const char* call = nullptr;
  close_call_window();
  disable_kinds(&ignored, &call);
  wait_until_quiet(monotonic_ns() + 100'000'000);
  if (!fresh) return;  // there was a reason not to finalize
  // Our own subscribe succeeded, so nobody else's session is torn down.
  if (subscriber_ != nullptr) api_.Finalize();
  subscriber_ = nullptr;
  activity_buffers().forget_held();
}

bool Tracer::wait_until_quiet(int64_t until_ns) const {
  while (!call_log().quiet()) {
    if (monotonic_ns() >= until_ns) return false;
    pause_ns(20'000);
  }
  return true;
}

// A default flush returns the buffers without unfinished records: none held means that
// everything recorded so far has ended on the device.
bool Tracer::wait_until_complete(int64_t until_ns, const DetachRequest& request,
                                 DetachOutcome* outcome) {
  for (;;) {
    const CUptiResult flush = api_.ActivityFlushAll(0);
    if (flush != CUPTI_SUCCESS && outcome->result == CUPTI_SUCCESS) {
      outcome->result = flush;
      outcome->call = "cuptiActivityFlushAll";
    }
    collect(false);
    if (flush != CUPTI_SUCCESS) return false;
    if (activity_buffers().held() == 0) return true;
    const int64_t now_ns = monotonic_ns();
    if (now_ns >= until_ns + request.more_for_records_ns) return false;
    if (now_ns >= until_ns && (request.in_a_hurry == nullptr || request.in_a_hurry())) return false;
    pause_ns(kPollNs);
  }
}

// CUPTI must not be torn down under a thread that is inside it (docs/decisions/018).
bool Tracer::nobody_launches(Halt halt) const {
  const CallLog& log = call_log();
  if (halt != Halt::kStands) {
    return (log.overtaken() - overtaken_before_) * kOvertakenOneIn <= writer_.calls();
  }
  const int64_t until_ns = monotonic_ns() + kStillLimitNs;
  uint64_t seen = log.outside();
  int64_t since_ns = monotonic_ns();
  for (;;) {
    pause_ns(kStillNs / 4);
    const int64_t now_ns = monotonic_ns();
    const uint64_t outside = log.outside();
    if (outside != seen) {
      seen = outside;
      since_ns = now_ns;
    }
    if (now_ns - since_ns >= kStillNs && log.quiet()) return true;
    if (now_ns >= until_ns) return false;
  }
}

DetachOutcome Tracer::detach(const DetachRequest& request) {
  DetachOutcome outcome = {};
  if (!attached()) return outcome;
  const int64_t end_ns = monotonic_ns();
  int64_t until_ns = end_ns + request.wait_ns;
  ActivityBuffers& buffers = activity_buffers();
  const uint64_t graph_launches = graph_sightings().graph_launches;

  // A replayed graph holds CUPTI's own nodes: the device must be done with them before kinds
  // are switched off (docs/decisions, graphs).
  bool complete = !request.device_idle_first || wait_until_complete(until_ns, request, &outcome);
  disable_kinds(&outcome.result, &outcome.call);
  refuse_new_calls();
  complete = wait_until_complete(until_ns, request, &outcome) && complete;
  if (monotonic_ns() >= until_ns) until_ns = monotonic_ns() + request.wait_ns;
  while (!call_log().no_open_calls() && monotonic_ns() < until_ns) pause_ns(20'000);
  close_call_window();
  const int64_t now_ns = monotonic_ns();
  const bool quiet = wait_until_quiet(until_ns > now_ns ? until_ns : now_ns + 20'000'000);
  if (buffers.held() != 0) {
    const CUptiResult flush = api_.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (flush != CUPTI_SUCCESS && outcome.result == CUPTI_SUCCESS) {
      outcome.result = flush;
      outcome.call = "cuptiActivityFlushAll";
    }
  }
  size_t dropped = 0;
  if (api_.ActivityGetNumDroppedRecords(nullptr, 0, &dropped) != CUPTI_SUCCESS) dropped = 0;
  collect(false);
  writer_.flush();  // before anybody is made to wait for the end of this

  const bool graphs_idle = !request.device_idle_first ||
                           (complete && graph_sightings().graph_launches == graph_launches);
  int64_t job_ran_ns = 0;
  int64_t stood_since_ns = request.stood_since_ns;
  bool go = request.finalize && quiet && graphs_idle;
  Halt halt = Halt::kRuns;
  if (go && request.before_finalize != nullptr) {
    const int64_t asked_ns = monotonic_ns();
    halt = request.before_finalize(request.before_finalize_data, &stood_since_ns);
    const int64_t until = stood_since_ns != 0 ? stood_since_ns : monotonic_ns();
    if (until > asked_ns) job_ran_ns = until - asked_ns;
  }
  go = go && halt != Halt::kNever;
  if (go && !nobody_launches(halt)) {
    go = false;
    outcome.threads_launch = true;
  }
  if (go) {
    const CUptiResult finalized = api_.Finalize();
    outcome.finalized = finalized == CUPTI_SUCCESS;
    if (!outcome.finalized && outcome.result == CUPTI_SUCCESS) {
      outcome.result = finalized;
      outcome.call = "cuptiFinalize";
    }
    subscriber_ = nullptr;
  }
  // What came back only now must not be parsed: after a finalize any CUPTI call would attach
  // it again.
  uint32_t lost_buffers = 0;
  if (outcome.finalized) {
    lost_buffers =
        buffers.drain([] {}, [](const ActivityBuffers::Filled&) {}) + buffers.forget_held();
  }
  const int64_t over_ns = monotonic_ns();
  outcome.detach_ns = over_ns - end_ns - job_ran_ns;
  outcome.records = writer_.ops();
  outcome.calls = writer_.calls();
  writer_.write_losses(dropped, call_log().take_lost(), lost_buffers);

  emit::WindowEndFact fact = {};
  fact.window_id = window_id_;
  fact.end_ns = end_ns;
  fact.detach_ns = outcome.finalized ? outcome.detach_ns : 0;
  fact.stayed_attached = !outcome.finalized;
  fact.records = outcome.records;
  fact.calls = outcome.calls;
  fact.reason = request.reason;
  fact.step_number = request.step_number;
  fact.inside_step_ns = request.inside_step_ns;
  fact.plain_step_ns = request.plain_step_ns;
  fact.inside_steps = request.inside_steps;
  fact.plain_steps = request.plain_steps;
  fact.detach_wait_ns = job_ran_ns;
  if (stood_since_ns != 0) fact.stood_ns = over_ns - stood_since_ns;
  emit::write_window_end(sink_, fact);
  window_id_ = 0;
  return outcome;
}

void Tracer::collect(bool ask_cupti) {
  if (ask_cupti && attached()) api_.ActivityFlushAll(0);
  // Calls after the buffers have come back and before they are read: then the calls of their
  // records are there, but for those that have not returned yet.
  const auto take_calls = [this] {
    call_log().drain([this](const CallRecord& record, uint32_t thread_id, uint32_t window_id) {
      writer_.take_call(record, thread_id, window_id);
    });
  };
  activity_buffers().drain(take_calls, [this](const ActivityBuffers::Filled& buffer) {
    writer_.take_buffer(api_, buffer);
  });
  if (attached()) call_log().keep_free(kFreeChunks);
}

}  // namespace idlescope::cuda
