// The device side of the recording as the rest of the library sees it: when CUPTI is
// attached, what the job did that matters for that, and the orderly end.
//
// In: CUDA came up, a step ended, a capture or another profiler began, commands of the API
// and of `idlescope ctl`. Out: device packets in the file (append_packet), a state.
// The calls that application threads make only store a few words and at most wake the drain
// thread; they never call CUPTI. Nothing here throws. In a process that never initialises
// CUDA no thread is started and all calls return at once.
#pragma once

#include <cstdint>

namespace idlescope::session {

// From InitializeInjection (inside cuInit, on the application's thread). Starts the drain
// thread; calls no CUDA function itself. Once per process image and fork.
void on_cuda_initialized();

// A training step (optimizer step, API mark) ended. `from_loader`: it is only a delivered
// batch, used until a better source of steps is seen. Application thread.
void on_step(int64_t now_ns, bool from_loader);

// torch.compile begins or ends a compilation: no silence of the training loop.
void on_compile(bool begins);

// The Python side is about to begin a stream capture, or has ended one. No attach or detach
// happens in between; `true` returns after a running attach or detach has finished (bounded
// by one second). Application thread.
void on_capture(bool begins);

// Another user of CUPTI (torch.profiler) is about to start, or has stopped. `true` returns
// after we have let go of CUPTI (bounded by two seconds). Application thread.
void on_other_profiler(bool starts);

// Public API; the control file (`idlescope ctl`) is read by the drain thread itself. Honoured in
// order, as soon as an attach or detach is safe. Any thread; asynchronous.
void request_window();
void request_window_end();

// Has what was recorded so far written at the next tick. Any thread; asynchronous.
void flush_device();

// Flushes and closes the open window and ends the drain thread (bounded by a few seconds).
// From the library's exit path, before the Footer is written; CUDA may already be gone.
// Further calls do nothing.
void finish_device();

// After fork, in the child: forget the parent's drain thread and window. Async-signal-safe.
void forget_device_after_fork();

// For the Footer (SelfStatistics, counts) and for `ctl status`.
struct DeviceStatistics {
  uint64_t gpu_ops;
  uint64_t host_calls;
  uint64_t callbacks;
  uint64_t steps;
  uint32_t windows;
  bool window_open;
  int64_t attach_ns;
  int64_t detach_ns;
  int64_t drain_cpu_ns;
  int64_t inside_windows_ns;
  int64_t estimated_cost_ns;  // -1: unknown
};
DeviceStatistics device_statistics();

}  // namespace idlescope::session
