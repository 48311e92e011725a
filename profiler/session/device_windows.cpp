#include "profiler/session/device_windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/emit/device_packets.h"
#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/host/python_bridge.h"
#include "profiler/session/device_state.h"
#include "profiler/session/diagnostics.h"
#include "profiler/session/standstill.h"

namespace idlescope::session {
namespace {

constexpr int64_t kDetachWaitNs = 300'000'000;
// A host can be a thousand launches ahead, seconds of a large model. The job goes on meanwhile.
constexpr int64_t kMoreForRecordsNs = 5'000'000'000;
constexpr int64_t kExitWaitNs = 500'000'000;
// How long to wait for the training thread to stand still: until its next step ends.
constexpr int64_t kLeastHoldNs = 500'000'000;
constexpr int64_t kMostHoldNs = 60'000'000'000;

}  // namespace

SchedulerOptions scheduler_options(const Options& options) {
  SchedulerOptions result;
  const char* window = options.header.window;
  if (strcmp(window, "full") == 0) {
    result.mode = WindowMode::kFull;
  } else if (strcmp(window, "off") == 0) {
    result.mode = WindowMode::kOff;
  } else if (window[0] >= '0' && window[0] <= '9') {
    // START+LENGTH, checked by options.cpp.
    result.mode = WindowMode::kFixed;
    char* plus = nullptr;
    result.fixed_start = strtoull(window, &plus, 10);
    result.fixed_length = *plus == '+' ? strtoull(plus + 1, nullptr, 10) : 1;
  }
  result.budget = options.header.budget;
  result.several_ranks = options.ranks.known && options.ranks.world_size > 1;
  result.duration_ns = options.duration_ns;
  result.steps = options.steps;
  return result;
}

DeviceWindows::DeviceWindows(const Options& options)
    : tracer_(&emit::append_packet, &emit::name_id),
      scheduler_(scheduler_options(options)),
      control_(options.output),
      full_detail_(strcmp(options.header.detail, "full") == 0),
      detach_graphs_held_(options.detach_graphs_held) {}

bool DeviceWindows::capture_open() const {
  return device_state().python_captures.load(std::memory_order_seq_cst) > 0 ||
         cuda::graph_sightings().captures_open > 0;
}

SchedulerInput DeviceWindows::facts() const {
  const DeviceState& state = device_state();
  SchedulerInput input;
  input.now_ns = emit::monotonic_ns();
  input.steps = state.steps.load(std::memory_order_acquire);
  input.last_step_ns = state.last_step_ns.load(std::memory_order_relaxed);
  if (input.steps == 0) {
    input.steps = state.batches.load(std::memory_order_acquire);
    input.last_step_ns = state.last_batch_ns.load(std::memory_order_relaxed);
  }
  input.records = tracer_.writer().ops();
  input.steps_will_show = host::bridge_installed();
  input.capture_open = capture_open();
  input.compiling = state.compiles_open.load(std::memory_order_relaxed) > 0;
  input.last_preparation_ns = state.last_preparation_ns.load(std::memory_order_relaxed);
  input.hands_off = state.other_profilers.load(std::memory_order_seq_cst) > 0;
  const cuda::GraphSightings graphs = cuda::graph_sightings();
  input.graphs_in_use = graphs.graph_launches + graphs.graphs_made > 0 ||
                        state.captures_seen.load(std::memory_order_relaxed) > 0;
  const cuda::VersionFacts version = tracer_.facts();
  input.reattach_allowed =
      !input.graphs_in_use || version.reattach_with_graphs || tracer_.subscribed();
  // The version is known after the first attach only, the name of the library before.
  input.reattach_sure = version.reattach_with_graphs || tracer_.library_major() >= 13;
  return input;
}

void DeviceWindows::prepare() {
  tracer_.find_library();
  const SchedulerInput input = facts();
  scheduler_.start(input.now_ns);
  const SchedulerDecision decision = scheduler_.tick(input);
  if (decision.command == SchedulerCommand::kOpen) open_window(decision.reason, input);
}

void DeviceWindows::take_requests() {
  const uint64_t wishes = device_state().wishes.load(std::memory_order_acquire);
  for (uint32_t left = new_wishes(wishes_seen_, wishes); left > 0; --left) {
    scheduler_.request(((wishes >> (left - 1)) & 1) != 0, "api");
  }
  wishes_seen_ = wishes;
  control_.look(emit::monotonic_ns(), [this](const ControlCommand& command) {
    scheduler_.request(command.start, "ctl", command.at_step);
  });
}

void DeviceWindows::tick() {
  DeviceState& state = device_state();
  const bool held = state.held.load(std::memory_order_seq_cst) != 0;
  take_requests();
  const SchedulerInput input = facts();
  const SchedulerDecision decision = scheduler_.tick(input);
  if (decision.command == SchedulerCommand::kOpen) open_window(decision.reason, input);
  // A close is asked for once, but may have to wait for a capture or a step.
  if (decision.command == SchedulerCommand::kClose) closing_ = decision.reason;
  if (closing_ != nullptr && tracer_.attached()) close_window(closing_, input, false);
  if (held) let_go(false);  // it stood to be looked at
  state.wake_at_step.store(scheduler_.next_step_of_interest(), std::memory_order_relaxed);
  publish_cost();
}

void DeviceWindows::publish_cost() const {
  device_state().estimated_cost_ns.store(scheduler_.windows() == 0 ? -1 : scheduler_.spent_ns(),
                                         std::memory_order_relaxed);
}

// `booked`: the scheduler was told of an attach or detach that holds the time it stood for.
void DeviceWindows::let_go(bool booked) {
  const int64_t since_ns = training_thread_stands_since_ns();
  const bool ours = device_state().hold.load(std::memory_order_seq_cst) != 0;
  if (ours && since_ns != 0 && !booked) scheduler_.stood_still(emit::monotonic_ns() - since_ns);
  release_training_thread();
}

// True: the training thread stands still from now until it is released. False: nobody marks
// steps, or not at the moment.
bool DeviceWindows::hold() {
  const DeviceState& state = device_state();
  int64_t limit_ns = 2 * scheduler_.usual_step_ns();
  if (limit_ns < kLeastHoldNs) limit_ns = kLeastHoldNs;
  if (limit_ns > kMostHoldNs) limit_ns = kMostHoldNs;
  const int64_t mark_ns = state.steps.load(std::memory_order_acquire) != 0
                              ? state.last_step_ns.load(std::memory_order_relaxed)
                              : state.last_batch_ns.load(std::memory_order_relaxed);
  const bool stands = state.held.load(std::memory_order_seq_cst) != 0;
  if (!stands && (mark_ns == 0 || emit::monotonic_ns() - mark_ns > limit_ns)) return false;
  return hold_training_thread(limit_ns);
}

void DeviceWindows::open_window(const char* reason, const SchedulerInput& decided) {
  DeviceState& state = device_state();
  hold();
  state.switching.store(1, std::memory_order_seq_cst);
  const auto switched = [this, &state](bool booked) {
    state.switching.store(0, std::memory_order_seq_cst);
    wake_all(&state.switching);
    let_go(booked);
  };
  // Announced first, looked at second: whoever announces a capture or another profiler after
  // this sees `switching` and waits.
  if (capture_open() || state.other_profilers.load(std::memory_order_seq_cst) > 0) {
    switched(false);
    return;
  }
  const SchedulerInput input = decided.steps == 0 ? decided : facts();
  cuda::AttachRequest request = {};
  request.window_id = next_window_id_;
  request.full_detail = full_detail_;
  request.reason = reason;
  request.step_number = input.steps;
  request.stood_since_ns = training_thread_stands_since_ns();
  const cuda::AttachOutcome outcome = tracer_.attach(request);
  if (outcome.status == cuda::AttachStatus::kAttached) {
    ++next_window_id_;
    opened_ns_ = emit::monotonic_ns();
    const int64_t stood_ns = request.stood_since_ns == 0 ? 0 : opened_ns_ - request.stood_since_ns;
    scheduler_.opened(opened_ns_, stood_ns > outcome.attach_ns ? stood_ns : outcome.attach_ns);
    state.subscribed.store(1, std::memory_order_seq_cst);
    state.attached.store(1, std::memory_order_seq_cst);
    state.windows.fetch_add(1, std::memory_order_relaxed);
    state.attach_ns.fetch_add(outcome.attach_ns, std::memory_order_relaxed);
    if (last_status_ != emit::kStateRecording) {
      last_status_ = emit::kStateRecording;
      emit::write_status(&emit::append_packet, emit::kStateRecording, opened_ns_, "", "", 0);
    }
    char line[160];
    const cuda::AttachTimes& times = tracer_.attach_times();
    snprintf(
        line, sizeof line,
        "window %u open (%s), CUPTI %u, attach %.1f ms: subscribe %.1f, callbacks %.1f, "
        "kinds %.1f",
        request.window_id, reason, tracer_.cupti_version(),
        static_cast<double>(outcome.attach_ns) / 1e6, static_cast<double>(times.subscribe_ns) / 1e6,
        static_cast<double>(times.callbacks_ns) / 1e6, static_cast<double>(times.kinds_ns) / 1e6);
    debug_line(line);
  } else {
    attach_failed(outcome);
  }
  switched(outcome.status == cuda::AttachStatus::kAttached);
}

void DeviceWindows::attach_failed(const cuda::AttachOutcome& outcome) {
  const int64_t now_ns = emit::monotonic_ns();
  const char* message = "cupti-failed";
  char detail[768] = "";
  char code[16];
  snprintf(code, sizeof code, "%d", static_cast<int>(outcome.result));
  const char* result = cuda::result_text(tracer_.api(), outcome.result);
  MessageValue values[3] = {
      {"call", outcome.call == nullptr ? "" : outcome.call}, {"result", result}, {"code", code}};
  size_t count = 3;
  bool again = false;
  switch (outcome.status) {
    case cuda::AttachStatus::kAttached:
      return;
    case cuda::AttachStatus::kNoLibrary: {
      message = "cupti-missing";
      const cuda::CuptiSearch& search = tracer_.find_library();
      if (search.found) {
        snprintf(detail, sizeof detail, "%.400s is version %u, from CUDA 12.0 on is supported",
                 search.path, tracer_.cupti_version());
      } else {
        snprintf(detail, sizeof detail, "%s", search.detail);
      }
      values[0] = {"detail", detail};
      count = 1;
      break;
    }
    case cuda::AttachStatus::kTaken:
      message = "cupti-taken";
      snprintf(detail, sizeof detail, "%s",
               outcome.holder[0] == '\0' ? "another profiler" : outcome.holder);
      values[0] = {"holder", detail};
      count = 1;
      again = true;
      break;
    case cuda::AttachStatus::kPermission:
      message = "cupti-permission";
      snprintf(detail, sizeof detail, "%s from %s", result, outcome.call);
      values[0] = {"code", result};
      count = 1;
      break;
    case cuda::AttachStatus::kFailed:
      snprintf(detail, sizeof detail, "%s from %s", result, outcome.call);
      break;
  }
  scheduler_.open_failed(now_ns, again);
  complain_once(message, values, count);
  if (last_status_ != emit::kStateHostOnly) {
    last_status_ = emit::kStateHostOnly;
    emit::write_status(&emit::append_packet, emit::kStateHostOnly, now_ns, message, detail,
                       static_cast<int32_t>(outcome.result));
  }
}

// With graphs only where the version allows it and the training thread stands still all along;
// without, it is asked to stand only for the finalize itself (Tracer::detach).
bool DeviceWindows::may_finalize(const SchedulerInput& input) {
  const cuda::VersionFacts version = tracer_.facts();
  if (!input.graphs_in_use) return version.finalize;
  if (version.graphs == cuda::GraphDetach::kNever && !detach_graphs_held_) return false;
  return hold();
}

void DeviceWindows::close_window(const char* reason, const SchedulerInput& input, bool at_exit) {
  DeviceState& state = device_state();
  // A thread that stands to be looked at need not stand while the buffers are collected.
  if (!input.graphs_in_use) let_go(false);
  const bool finalize = !at_exit && !capture_open() && may_finalize(input);
  state.switching.store(1, std::memory_order_seq_cst);
  if (!at_exit && capture_open()) {
    state.switching.store(0, std::memory_order_seq_cst);
    wake_all(&state.switching);
    let_go(false);
    return;
  }
  const WindowCost cost = scheduler_.cost_so_far();
  cuda::DetachRequest request = {};
  request.finalize = finalize;
  request.device_idle_first = finalize && input.graphs_in_use;
  request.before_finalize = [](void* windows, int64_t* stood_since_ns) {
    const bool stands = static_cast<DeviceWindows*>(windows)->hold();
    *stood_since_ns = training_thread_stands_since_ns();
    // At exit nothing is finalized.
    if (device_state().stop.load(std::memory_order_acquire) != 0) return cuda::Halt::kNever;
    return stands ? cuda::Halt::kStands : cuda::Halt::kRuns;
  };
  request.before_finalize_data = this;
  request.stood_since_ns = training_thread_stands_since_ns();
  request.wait_ns = at_exit ? kExitWaitNs : kDetachWaitNs;
  request.more_for_records_ns = at_exit ? 0 : kMoreForRecordsNs;
  request.in_a_hurry = [] {
    const DeviceState& now = device_state();
    return now.stop.load(std::memory_order_acquire) != 0 ||
           now.other_profilers.load(std::memory_order_seq_cst) > 0 ||
           now.python_captures.load(std::memory_order_seq_cst) > 0 ||
           now.held.load(std::memory_order_seq_cst) != 0;
  };
  request.reason = reason;
  request.step_number = input.steps;
  request.inside_step_ns = cost.inside_step_ns;
  request.plain_step_ns = cost.plain_step_ns;
  request.inside_steps = cost.inside_steps;
  request.plain_steps = cost.plain_steps;
  const uint32_t window_id = tracer_.window_id();
  const cuda::DetachOutcome outcome = tracer_.detach(request);
  closing_ = nullptr;
  const int64_t now_ns = emit::monotonic_ns();
  scheduler_.closed(now_ns, outcome.detach_ns, !outcome.finalized);
  state.subscribed.store(tracer_.subscribed() ? 1 : 0, std::memory_order_seq_cst);
  state.attached.store(0, std::memory_order_seq_cst);
  wake_all(&state.attached);
  state.detach_ns.fetch_add(outcome.detach_ns, std::memory_order_relaxed);
  state.inside_windows_ns.fetch_add(now_ns - opened_ns_, std::memory_order_relaxed);
  state.switching.store(0, std::memory_order_seq_cst);
  wake_all(&state.switching);
  let_go(true);
  publish();
  if (!outcome.finalized && !at_exit) say_stays(outcome, input);

  char line[256];
  snprintf(
      line, sizeof line, "window %u closed (%s): %llu records, %llu calls, detach %.1f ms, %s%s%s",
      window_id, reason, static_cast<unsigned long long>(outcome.records),
      static_cast<unsigned long long>(outcome.calls), static_cast<double>(outcome.detach_ns) / 1e6,
      outcome.finalized        ? "finalized"
      : outcome.threads_launch ? "still attached, several threads launch at once"
                               : "still attached",
      outcome.call == nullptr ? "" : ", first failure ",
      outcome.call == nullptr ? "" : outcome.call);
  debug_line(line);
}

void DeviceWindows::say_stays(const cuda::DetachOutcome& outcome, const SchedulerInput& input) {
  if (said_stays_) return;
  said_stays_ = true;
  const char* why = outcome.threads_launch ? "limit-stays-threads"
                    : input.graphs_in_use  ? "limit-stays-graphs"
                                           : "limit-stays-busy";
  emit::write_status(&emit::append_packet, emit::kStateRecording, emit::monotonic_ns(), why, "",
                     static_cast<int32_t>(outcome.result));
}

void DeviceWindows::publish() {
  DeviceState& state = device_state();
  state.gpu_ops.store(tracer_.writer().total_ops(), std::memory_order_relaxed);
  state.host_calls.store(tracer_.writer().total_calls(), std::memory_order_relaxed);
}

void DeviceWindows::collect(bool ask_cupti) {
  tracer_.collect(ask_cupti);
  publish();
}

void DeviceWindows::finish() {
  if (tracer_.attached()) close_window("end", facts(), true);
  publish_cost();
}

}  // namespace idlescope::session
