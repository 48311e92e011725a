#include "profiler/session/standstill.h"

#include <time.h>

#include "profiler/emit/process_identity.h"
#include "profiler/session/device_state.h"
#include "profiler/session/drain_thread.h"

namespace idlescope::session {
namespace {

constexpr int64_t kStandNs = 1'000'000'000;
constexpr int64_t kLookNs = 20'000'000;
// Other threads finish the operator that they are in, then wait for Python's lock.
constexpr int64_t kSettleNs = 300'000;

}  // namespace

void stand_still() {
  if (!device_state_is_mine()) return;
  DeviceState& state = device_state();
  const int64_t since_ns = emit::monotonic_ns();
  const int64_t until_ns = since_ns + kStandNs;
  state.held_since_ns.store(since_ns, std::memory_order_relaxed);
  state.held.store(1, std::memory_order_seq_cst);
  wake_drain_thread();
  while (state.hold.load(std::memory_order_seq_cst) != 0) {
    const int64_t left_ns = until_ns - emit::monotonic_ns();
    if (left_ns <= 0) {
      state.hold.store(0, std::memory_order_seq_cst);  // one long step, not one after another
      break;
    }
    wait_on(&state.hold, 1, left_ns);
  }
  state.held.store(0, std::memory_order_seq_cst);
}

void stand_still_here() {
  if (!device_state_is_mine()) return;
  device_state().hold.store(1, std::memory_order_seq_cst);
  stand_still();
}

bool hold_training_thread(int64_t limit_ns) {
  DeviceState& state = device_state();
  const int64_t until_ns = emit::monotonic_ns() + limit_ns;
  // Also where it stands: it may have been let go a moment ago and not have woken up yet.
  state.hold.store(1, std::memory_order_seq_cst);
  const timespec settle = {0, kSettleNs};
  for (;;) {
    if (state.held.load(std::memory_order_seq_cst) != 0) {
      nanosleep(&settle, nullptr);
      if (state.held.load(std::memory_order_seq_cst) != 0) return true;
    }
    const uint32_t wake = state.wake.load(std::memory_order_acquire);
    const int64_t left_ns = until_ns - emit::monotonic_ns();
    if (left_ns <= 0 || state.stop.load(std::memory_order_acquire) != 0) {
      release_training_thread();
      return false;
    }
    if (state.held.load(std::memory_order_seq_cst) == 0) {
      wait_on(&state.wake, wake, left_ns < kLookNs ? left_ns : kLookNs);
    }
  }
}

int64_t training_thread_stands_since_ns() {
  const DeviceState& state = device_state();
  if (state.held.load(std::memory_order_seq_cst) == 0) return 0;
  return state.held_since_ns.load(std::memory_order_relaxed);
}

void release_training_thread() {
  DeviceState& state = device_state();
  state.hold.store(0, std::memory_order_seq_cst);
  wake_all(&state.hold);
}

}  // namespace idlescope::session
