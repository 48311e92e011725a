#include "profiler/session/device_session.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profiler/cuda/call_log.h"
#include "profiler/cuda/tracer.h"
#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/session/device_state.h"
#include "profiler/session/diagnostics.h"
#include "profiler/session/drain_thread.h"
#include "profiler/session/standstill.h"

namespace idlescope::session {
namespace {

constexpr int64_t kLetGoNs = 2'000'000'000;
constexpr int64_t kSwitchNs = 1'000'000'000;
constexpr int64_t kFinishNs = 5'000'000'000;

constinit DeviceState state_of_process;

}  // namespace

DeviceState& device_state() { return state_of_process; }

bool device_state_is_mine() {
  const int32_t pid = state_of_process.pid.load(std::memory_order_acquire);
  return pid != 0 && pid == static_cast<int32_t>(getpid());
}

void wait_on(std::atomic<uint32_t>* word, uint32_t expected, int64_t limit_ns) {
  const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000),
                          static_cast<long>(limit_ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void on_cuda_initialized() {
  if (!emit::recording_possible() || device_state_is_mine()) return;
  DeviceState& state = state_of_process;
  if (state.pid.load(std::memory_order_acquire) != 0) forget_device_after_fork();
  state.estimated_cost_ns.store(-1, std::memory_order_relaxed);
  state.pid.store(static_cast<int32_t>(getpid()), std::memory_order_release);
  if (!start_drain_thread()) {
    state.pid.store(0, std::memory_order_release);
    return;
  }
  // CUPTI is mapped by now, so this handler runs before CUPTI's own. On the application's
  // thread: on another one, a fork at this moment would leave the child's exit list locked.
  atexit(finish_device);
}

void on_step(int64_t now_ns, bool from_loader) {
  DeviceState& state = state_of_process;
  if (from_loader) {
    // A batch may be taken by another thread than the one that trains: where steps are marked,
    // only those count.
    if (state.hold.load(std::memory_order_relaxed) != 0 &&
        state.steps.load(std::memory_order_relaxed) == 0) {
      stand_still();
    }
    state.last_batch_ns.store(now_ns, std::memory_order_relaxed);
    state.batches.fetch_add(1, std::memory_order_release);
    return;
  }
  state.last_step_ns.store(now_ns, std::memory_order_relaxed);
  const uint64_t step = state.steps.fetch_add(1, std::memory_order_release) + 1;
  if (step == state.wake_at_step.load(std::memory_order_relaxed)) {
    stand_still_here();
  } else if (state.hold.load(std::memory_order_relaxed) != 0) {
    stand_still();
  }
}

void on_compile(bool begins) {
  DeviceState& state = state_of_process;
  state.last_preparation_ns.store(emit::monotonic_ns(), std::memory_order_relaxed);
  state.compiles_open.fetch_add(begins ? 1 : -1, std::memory_order_relaxed);
}

void on_capture(bool begins) {
  state_of_process.last_preparation_ns.store(emit::monotonic_ns(), std::memory_order_relaxed);
  // Also before CUDA is up in our eyes: a graph job is treated with care from its first window.
  if (begins) state_of_process.captures_seen.fetch_add(1, std::memory_order_relaxed);
  if (!device_state_is_mine()) return;
  DeviceState& state = state_of_process;
  if (!begins) {
    state.python_captures.fetch_sub(1, std::memory_order_release);
    return;
  }
  state.python_captures.fetch_add(1, std::memory_order_seq_cst);
  if (state.switching.load(std::memory_order_seq_cst) == 0) return;
  state.held_since_ns.store(emit::monotonic_ns(), std::memory_order_relaxed);
  state.held.store(1, std::memory_order_seq_cst);  // this thread stands still here
  wake_drain_thread();
  const int64_t until_ns = emit::monotonic_ns() + kSwitchNs;
  while (state.switching.load(std::memory_order_seq_cst) != 0) {
    const int64_t left_ns = until_ns - emit::monotonic_ns();
    if (left_ns <= 0) break;
    wait_on(&state.switching, 1, left_ns);
  }
  state.held.store(0, std::memory_order_seq_cst);
}

void on_other_profiler(bool starts) {
  if (!device_state_is_mine()) return;
  DeviceState& state = state_of_process;
  if (!starts) {
    state.other_profilers.fetch_sub(1, std::memory_order_release);
    wake_drain_thread();
    return;
  }
  state.other_profilers.fetch_add(1, std::memory_order_seq_cst);
  state.held_since_ns.store(emit::monotonic_ns(), std::memory_order_relaxed);
  state.held.store(1, std::memory_order_seq_cst);  // this thread stands still here
  wake_drain_thread();
  const int64_t until_ns = emit::monotonic_ns() + kLetGoNs;
  for (;;) {
    const bool busy = state.attached.load(std::memory_order_seq_cst) != 0 ||
                      state.switching.load(std::memory_order_seq_cst) != 0;
    const int64_t left_ns = until_ns - emit::monotonic_ns();
    if (!busy || left_ns <= 0) break;
    std::atomic<uint32_t>* word = state.attached.load() != 0 ? &state.attached : &state.switching;
    wait_on(word, 1, left_ns);
  }
  state.held.store(0, std::memory_order_seq_cst);
  if (state.subscribed.load(std::memory_order_seq_cst) != 0) {
    complain_once("cupti-kept", nullptr, 0);
  }
}

void push_wish(std::atomic<uint64_t>* wishes, bool opens) {
  constexpr uint64_t kMask = (uint64_t{1} << kWishBits) - 1;
  uint64_t before = wishes->load(std::memory_order_relaxed);
  uint64_t after = 0;
  do {
    const uint64_t count = (before >> kWishBits) + 1;
    after = (count << kWishBits) | (((before << 1) | (opens ? 1 : 0)) & kMask);
  } while (!wishes->compare_exchange_weak(before, after, std::memory_order_release,
                                          std::memory_order_relaxed));
}

uint32_t new_wishes(uint64_t seen, uint64_t now) {
  // The number wraps at 65536: more than that never waits.
  const auto count = static_cast<uint16_t>((now >> kWishBits) - (seen >> kWishBits));
  return count < kWishBits ? count : kWishBits;
}

void request_window() {
  push_wish(&state_of_process.wishes, true);
  if (device_state_is_mine()) wake_drain_thread();
}

void request_window_end() {
  push_wish(&state_of_process.wishes, false);
  if (device_state_is_mine()) wake_drain_thread();
}

void flush_device() {
  if (!device_state_is_mine()) return;
  state_of_process.flush.store(1, std::memory_order_release);
  wake_drain_thread();
}

void finish_device() {
  if (!device_state_is_mine()) return;
  stop_drain_thread(kFinishNs);
}

void forget_device_after_fork() {
  DeviceState& state = state_of_process;
  for (std::atomic<uint32_t>* word :
       {&state.wake, &state.stop, &state.ended, &state.attached, &state.switching, &state.windows,
        &state.captures_seen, &state.flush, &state.hold, &state.held, &state.subscribed}) {
    word->store(0, std::memory_order_relaxed);
  }
  for (std::atomic<uint64_t>* word : {&state.steps, &state.batches, &state.wake_at_step,
                                      &state.gpu_ops, &state.host_calls, &state.wishes}) {
    word->store(0, std::memory_order_relaxed);
  }
  for (std::atomic<int64_t>* word :
       {&state.last_step_ns, &state.last_batch_ns, &state.attach_ns, &state.detach_ns,
        &state.drain_cpu_ns, &state.inside_windows_ns, &state.estimated_cost_ns,
        &state.held_since_ns}) {
    word->store(0, std::memory_order_relaxed);
  }
  state.python_captures.store(0, std::memory_order_relaxed);
  state.other_profilers.store(0, std::memory_order_relaxed);
  state.compiles_open.store(0, std::memory_order_relaxed);
  state.pid.store(0, std::memory_order_release);
  cuda::forget_callbacks_after_fork();
}

DeviceStatistics device_statistics() {
  DeviceStatistics result = {};
  result.estimated_cost_ns = -1;
  result.steps = state_of_process.steps.load(std::memory_order_relaxed);
  if (!device_state_is_mine()) return result;
  const DeviceState& state = state_of_process;
  result.gpu_ops = state.gpu_ops.load(std::memory_order_relaxed);
  result.host_calls = state.host_calls.load(std::memory_order_relaxed);
  result.callbacks = cuda::call_log().callbacks();
  result.windows = state.windows.load(std::memory_order_relaxed);
  result.window_open = state.attached.load(std::memory_order_relaxed) != 0;
  result.attach_ns = state.attach_ns.load(std::memory_order_relaxed);
  result.detach_ns = state.detach_ns.load(std::memory_order_relaxed);
  result.drain_cpu_ns = state.drain_cpu_ns.load(std::memory_order_relaxed);
  result.inside_windows_ns = state.inside_windows_ns.load(std::memory_order_relaxed);
  result.estimated_cost_ns = state.estimated_cost_ns.load(std::memory_order_relaxed);
  return result;
}

}  // namespace idlescope::session
