// What application threads and the drain thread share about the device side.
//
// In: stores of application threads (a few words each). Out: the drain thread's view at its
// next tick, and numbers for the Footer. Plain atomics in static memory: nothing to construct
// or destroy, nothing to lock. `pid` tells a forked child that none of it is its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace idlescope::session {

struct DeviceState {
  std::atomic<int32_t> pid;          // of the process whose drain thread this is; 0: none
  std::atomic<uint32_t> wake;        // futex; counts wake-ups
  std::atomic<uint32_t> flush;       // 1: write what there is
  std::atomic<uint32_t> stop;        // 1: close and end
  std::atomic<uint32_t> ended;       // futex; 1: the thread is gone
  std::atomic<uint32_t> attached;    // futex; 1: CUPTI is attached now
  std::atomic<uint32_t> subscribed;  // 1: CUPTI is ours, also where a detach was not safe
  std::atomic<uint32_t> switching;   // futex; 1: an attach or detach is under way

  std::atomic<uint64_t> steps;    // optimizer steps or API marks
  std::atomic<uint64_t> batches;  // delivered batches
  std::atomic<int64_t> last_step_ns;
  std::atomic<int64_t> last_batch_ns;
  std::atomic<uint64_t> wake_at_step;  // the drain thread wants to see this one; 0: none

  // standstill.h: the drain thread sets `hold`, the training thread notices at its next step,
  // sets `held` and waits until `hold` is 0.
  std::atomic<uint32_t> hold;  // futex
  std::atomic<uint32_t> held;
  std::atomic<int64_t> held_since_ns;  // valid while `held` is set

  std::atomic<int32_t> python_captures;      // captures that the Python side announced
  std::atomic<uint32_t> captures_seen;       // ever, by the Python side
  std::atomic<int32_t> compiles_open;        // torch.compile at work
  std::atomic<int64_t> last_preparation_ns;  // a compilation or capture began or ended
  std::atomic<int32_t> other_profilers;      // sessions of other tools
  std::atomic<uint64_t> wishes;              // of the C API, see push_wish

  std::atomic<uint64_t> gpu_ops;
  std::atomic<uint64_t> host_calls;
  std::atomic<uint32_t> windows;
  std::atomic<int64_t> attach_ns;
  std::atomic<int64_t> detach_ns;
  std::atomic<int64_t> drain_cpu_ns;
  std::atomic<int64_t> inside_windows_ns;
  std::atomic<int64_t> estimated_cost_ns;
};

DeviceState& device_state();

// Windows that the program asks for, in order: the low 48 bits of `wishes` are the last ones,
// newest lowest, 1 for start and 0 for stop; above is their number. Any thread.
inline constexpr uint32_t kWishBits = 48;
void push_wish(std::atomic<uint64_t>* wishes, bool opens);
// How many came since `seen` (the word then), of which at most 48 are still known.
uint32_t new_wishes(uint64_t seen, uint64_t now);

// True in the process that started the drain thread.
bool device_state_is_mine();

// Sleeps until `word` differs from `expected` or the time is over.
void wait_on(std::atomic<uint32_t>* word, uint32_t expected, int64_t limit_ns);
void wake_all(std::atomic<uint32_t>* word);

}  // namespace idlescope::session
