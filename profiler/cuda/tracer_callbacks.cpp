#include "profiler/cuda/tracer_callbacks.h"

#include <time.h>

#include <atomic>
#include <cstring>

#include "profiler/cuda/activity_buffers.h"
#include "profiler/cuda/call_log.h"
#include "profiler/cuda/call_table.h"
#include "profiler/cuda/clock.h"
#include "profiler/cuda/tracer.h"
#include "profiler/emit/device_record.h"
#include "profiler/emit/trace_file.h"

namespace idlescope::cuda {
namespace {

std::atomic<uint32_t> call_window{0};
std::atomic<bool> entering{false};  // calls that begin now are recorded
std::atomic<int64_t> call_window_begin_ns{0};
std::atomic<int64_t> keep_from_ns{INT64_MAX};
std::atomic<uint64_t> foreign{0};
std::atomic<bool> both_domains{false};

std::atomic<int32_t> captures_open{0};
std::atomic<int64_t> capture_begin_ns{0};
std::atomic<uint64_t> graph_launches{0};
std::atomic<uint64_t> graphs_made{0};

// A runtime call and the driver call inside it are one capture: only the outermost counts.
void note_capture(ThreadSlot* slot, const CallFunction& function, bool enters, bool failed,
                  int64_t now_ns) {
  if (enters) {
    ++slot->capture_depth;
    return;
  }
  if (slot->capture_depth > 0) --slot->capture_depth;
  if (slot->capture_depth != 0) return;
  if (function.call_class == emit::kCallCaptureBegin) {
    if (failed) return;
    captures_open.fetch_add(1, std::memory_order_relaxed);
    capture_begin_ns.store(now_ns, std::memory_order_relaxed);
  } else if (captures_open.load(std::memory_order_relaxed) > 0) {
    // A failed end (invalidated capture) ends it all the same.
    captures_open.fetch_sub(1, std::memory_order_relaxed);
  }
}

void note_graph(ThreadSlot* slot, const CallFunction& function, bool enters, bool failed,
                int64_t now_ns) {
  switch (function.call_class) {
    case emit::kCallCaptureBegin:
    case emit::kCallCaptureEnd:
      note_capture(slot, function, enters, failed, now_ns);
      break;
    case emit::kCallGraphLaunch:
      // At enter: the detacher must see a launch that is just beginning.
      if (enters) graph_launches.fetch_add(1, std::memory_order_seq_cst);
      break;
    case emit::kCallGraphInstantiate:
      if (!enters) graphs_made.fetch_add(1, std::memory_order_relaxed);
      break;
    default:
      break;
  }
}

bool concerns_graphs(uint8_t call_class) {
  return call_class >= emit::kCallGraphInstantiate && call_class <= emit::kCallCaptureEnd;
}

uint8_t domain_of(const CallFunction& function) {
  return function.domain == CUPTI_CB_DOMAIN_RUNTIME_API ? emit::kDomainRuntime
                                                        : emit::kDomainDriver;
}

// The driver call inside a runtime call of the same class says nothing new and would cost half
// as much again, in time and in the file. Of another class (a module load inside a launch) it
// is what explains the outer one.
bool repeats_outer_call(const ThreadSlot& slot, const CallFunction& function,
                        uint32_t correlation) {
  if (function.domain != CUPTI_CB_DOMAIN_DRIVER_API) return false;
  for (uint32_t i = slot.depth; i > 0; --i) {
    const EnteredCall& outer = slot.entered[i - 1];
    if (outer.domain != emit::kDomainRuntime) continue;
    return outer.wanted && outer.correlation_id == correlation &&
           outer.call_class == function.call_class && !both_domains.load(std::memory_order_relaxed);
  }
  return false;
}

void remember_enter(ThreadSlot* slot, const CallFunction& function, const CUpti_CallbackData& data,
                    bool wanted, int64_t now_ns) {
  if (slot->depth == ThreadSlot::kMaxNested) {
    // Nothing nests so deep: the outermost ones have lost their exits.
    memmove(slot->entered, slot->entered + 1, (ThreadSlot::kMaxNested - 1) * sizeof(EnteredCall));
    --slot->depth;
  }
  slot->entered[slot->depth++] = {now_ns,
                                  data.correlationId,
                                  static_cast<uint16_t>(function.id),
                                  domain_of(function),
                                  function.call_class,
                                  wanted};
}

enum class Entered : uint8_t { kWanted, kNotWanted, kBefore };

// What enter left for this exit. Calls nest, so what lies above it has lost its exit (the
// callbacks of a window that was closed meanwhile).
Entered take_enter(ThreadSlot* slot, const CallFunction& function, const CUpti_CallbackData& data,
                   int64_t* begin_ns) {
  for (uint32_t i = slot->depth; i > 0; --i) {
    const EnteredCall& call = slot->entered[i - 1];
    if (call.correlation_id != data.correlationId || call.cbid != function.id ||
        call.domain != domain_of(function)) {
      continue;
    }
    slot->depth = i - 1;
    *begin_ns = call.begin_ns;
    return call.wanted ? Entered::kWanted : Entered::kNotWanted;
  }
  return Entered::kBefore;
}

// Not below zero: the counter is reset when a detach gave up on a call that never came back.
void leave_call(ThreadSlot* slot) {
  const uint32_t open = slot->open_calls.load(std::memory_order_relaxed);
  if (open != 0) slot->open_calls.store(open - 1, std::memory_order_release);
}

// The thread that began a launch last. Relaxed and without a locked instruction: a launch that
// finds another thread here at its end was overtaken, which is what several launching threads
// look like; one thread, or two that take turns (autograd), never do.
std::atomic<ThreadSlot*> latest_launcher{nullptr};

bool launches(uint8_t call_class) {
  return call_class == emit::kCallLaunch || call_class == emit::kCallGraphLaunch ||
         call_class == emit::kCallMemcpy || call_class == emit::kCallMemset;
}

// The counter is written by its thread only.
void count(std::atomic<uint64_t>* counter) {
  counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// A thread that made no call for this long was busy elsewhere or did not run (interpreter
// lock, no CPU): only its CPU clock tells. 0.8 us, so not at every call.
constexpr int64_t kSilenceNs = 200'000;
constexpr uint32_t kEventThreadCpu = 71;  // HostEventKind

void sample_thread_cpu(int64_t now_ns) {
  timespec cpu;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0) return;
  emit::HostRecord* record = emit::reserve_host_record();
  if (record == nullptr) return;
  record->begin_ns = now_ns;
  record->end_ns = now_ns;
  record->iterator = 0;
  record->epoch = 0;
  record->batch = -1;
  record->a = int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
  record->b = 0;
  record->c = 0;
  emit::commit_host_record(record, kEventThreadCpu);
}

void begin_call(ThreadSlot* slot, const CallFunction& function, const CUpti_CallbackData& data) {
  if (concerns_graphs(function.call_class)) note_graph(slot, function, true, false, 0);
  if (!entering.load(std::memory_order_relaxed) ||
      repeats_outer_call(*slot, function, data.correlationId)) {
    remember_enter(slot, function, data, false, 0);
    return;
  }
  if (launches(function.call_class)) latest_launcher.store(slot, std::memory_order_relaxed);
  slot->open_calls.fetch_add(1, std::memory_order_relaxed);
  const int64_t now_ns = monotonic_ns();
  if (now_ns - slot->last_exit_ns > kSilenceNs) sample_thread_cpu(now_ns);
  remember_enter(slot, function, data, true, now_ns);
}

// Looking a function up is part of each launch through a cudaKernel_t; it says something only
// when it loads code.
constexpr int64_t kLookUpNs = 10'000;
bool is_quick_look_up(const CallFunction& function, int64_t duration_ns) {
  return function.call_class == emit::kCallModuleLoad && duration_ns < kLookUpNs;
}

void finish_call(ThreadSlot* slot, uint32_t window, const CallFunction& function,
                 const CUpti_CallbackData& data) {
  int64_t entered_ns = 0;
  const Entered entered = take_enter(slot, function, data, &entered_ns);
  // CUresult and cudaError_t are both ints with 0 for success.
  const int32_t result = data.functionReturnValue == nullptr
                             ? 0
                             : *static_cast<const int32_t*>(data.functionReturnValue);
  if (concerns_graphs(function.call_class)) {
    note_graph(slot, function, false, result != 0, monotonic_ns());
  }
  if (entered == Entered::kNotWanted) return;
  if (launches(function.call_class) && entered == Entered::kWanted &&
      latest_launcher.load(std::memory_order_relaxed) != slot) {
    count(&slot->overtaken);
  }
  const int64_t now_ns = monotonic_ns();
  // A launch that waited for room in the queue over the whole attach: its kernel is recorded,
  // so the call is too, from the window's begin on.
  const bool entered_before = entered == Entered::kBefore;
  const int64_t begin_ns =
      entered_before ? call_window_begin_ns.load(std::memory_order_relaxed) : entered_ns;
  const bool wanted = begin_ns <= now_ns &&
                      now_ns >= keep_from_ns.load(std::memory_order_relaxed) &&
                      !is_quick_look_up(function, now_ns - begin_ns);
  CallRecord* record = wanted ? call_log().next_record(slot, window) : nullptr;
  if (record == nullptr) {
    if (!entered_before) leave_call(slot);
    return;
  }
  record->begin_ns = begin_ns;
  record->end_ns = now_ns;
  record->correlation_id = data.correlationId;
  record->context_id = data.contextUid;
  record->result = result;
  record->cbid = static_cast<uint16_t>(function.id);
  record->domain = domain_of(function);
  decode_call(function, data.functionParams, result != 0, record);
  CallLog::commit(slot);
  slot->last_exit_ns = now_ns;
  if (!entered_before) leave_call(slot);
}

}  // namespace

void record_both_domains(bool on) { both_domains.store(on, std::memory_order_relaxed); }

void open_call_window(uint32_t window_id) {
  call_log().forget_open_calls();
  call_window_begin_ns.store(monotonic_ns(), std::memory_order_relaxed);
  keep_from_ns.store(INT64_MAX, std::memory_order_relaxed);
  entering.store(true, std::memory_order_relaxed);
  call_window.store(window_id, std::memory_order_seq_cst);
}
void keep_calls_from(int64_t end_ns) { keep_from_ns.store(end_ns, std::memory_order_relaxed); }
void refuse_new_calls() { entering.store(false, std::memory_order_seq_cst); }
void close_call_window() {
  refuse_new_calls();
  call_window.store(0, std::memory_order_seq_cst);
}

void CUPTIAPI on_cuda_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                           const void* raw) {
  ThreadSlot* slot = call_log().enter();
  if (slot == nullptr) return;  // one of our own threads
  const uint32_t window = call_window.load(std::memory_order_seq_cst);
  const CallFunction* function = window == 0 ? nullptr : find_call(domain, id);
  if (window == 0) count(&slot->outside);
  if (function != nullptr && call_log().is_shared(slot)) {
    const bool ends = static_cast<const CUpti_CallbackData*>(raw)->callbackSite == CUPTI_API_EXIT;
    if (ends) slot->lost.fetch_add(1, std::memory_order_relaxed);
    function = nullptr;
  }
  if (function != nullptr) {
    const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
    count(&slot->callbacks);
    if (slot->entered_window != window) {
      slot->entered_window = window;
      slot->depth = 0;
    }
    if (data.callbackSite == CUPTI_API_ENTER) {
      begin_call(slot, *function, data);
    } else {
      finish_call(slot, window, *function, data);
    }
  }
  CallLog::leave(slot);
}

void CUPTIAPI on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = activity_buffers().request(size);
  *max_records = 0;
}

void CUPTIAPI on_buffer_completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_size) {
  if (!activity_buffers().complete(buffer, valid_size)) {
    foreign.fetch_add(1, std::memory_order_relaxed);
  }
}

uint64_t CUPTIAPI host_timestamp() { return static_cast<uint64_t>(monotonic_ns()); }

uint64_t foreign_buffers() { return foreign.load(std::memory_order_relaxed); }

GraphSightings graph_sightings() {
  const int32_t open = captures_open.load(std::memory_order_relaxed);
  return {
      static_cast<uint32_t>(open < 0 ? 0 : open), capture_begin_ns.load(std::memory_order_relaxed),
      graph_launches.load(std::memory_order_relaxed), graphs_made.load(std::memory_order_relaxed)};
}

void forget_callbacks_after_fork() {
  call_window.store(0, std::memory_order_relaxed);
  captures_open.store(0, std::memory_order_relaxed);
  call_log().forget_after_fork();
}

}  // namespace idlescope::cuda
