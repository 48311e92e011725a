#include "profiler/session/drain_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <new>

#include "profiler/cuda/call_log.h"
#include "profiler/cuda/tracer.h"
#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/session/counter_sampling.h"
#include "profiler/session/device_state.h"
#include "profiler/session/device_windows.h"
#include "profiler/session/options.h"

namespace idlescope::session {
namespace {

// Address space, not memory. glibc takes the static TLS of all libraries out of it: with
// 256 KiB a LibTorch program crashed here.
constexpr size_t kStackBytes = 2 * 1024 * 1024;
constexpr int64_t kTickNs = 20'000'000;
constexpr int64_t kCollectNs = 70'000'000;
constexpr int64_t kWriteNs = 140'000'000;
constexpr int64_t kChunkNs = 100'000'000;

// Made on the application's thread inside cuInit, used by the drain thread, never destroyed.
DeviceWindows* windows = nullptr;

int64_t thread_cpu_ns() {
  timespec now;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void run() {
  DeviceState& state = device_state();
  int64_t collected_ns = 0;
  int64_t written_ns = 0;
  int64_t chunk_ns = 0;
  while (state.stop.load(std::memory_order_acquire) == 0) {
    const uint32_t wake = state.wake.load(std::memory_order_acquire);
    windows->tick();
    const int64_t now_ns = emit::monotonic_ns();
    if (windows->open()) {
      const bool flush = state.flush.exchange(0, std::memory_order_acquire) != 0;
      const bool collect = flush || now_ns - collected_ns >= kCollectNs;
      windows->collect(collect);
      if (collect) collected_ns = now_ns;
      if (flush || now_ns - written_ns >= kWriteNs) {
        windows->write();
        written_ns = now_ns;
      }
    }
    sample_counters(now_ns);
    if (now_ns - chunk_ns >= kChunkNs) {
      emit::prepare_host_chunk();
      chunk_ns = now_ns;
      state.drain_cpu_ns.store(thread_cpu_ns(), std::memory_order_relaxed);
    }
    wait_on(&state.wake, wake, kTickNs);
  }
  windows->finish();
  state.drain_cpu_ns.store(thread_cpu_ns(), std::memory_order_relaxed);
}

void* thread_main(void*) {
  prctl(PR_SET_NAME, "idlescope");
  cuda::CallLog::mark_own_thread(true);
  windows->relax_capture_mode();
  run();
  DeviceState& state = device_state();
  state.ended.store(1, std::memory_order_release);
  wake_all(&state.ended);
  return nullptr;
}

}  // namespace

bool start_drain_thread() {
  if (pthread_create == nullptr) return false;  // a process without libpthread (old glibc)
  void* memory = malloc(sizeof(DeviceWindows));
  if (memory == nullptr) return false;
  windows = new (memory) DeviceWindows(options());
  // A window that is to hold everything starts before the first kernel, here inside cuInit.
  cuda::CallLog::mark_own_thread(true);
  windows->prepare();
  cuda::CallLog::mark_own_thread(false);

  // Signals belong to the job's threads: PyTorch's handlers and Python's expect them there.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, &thread_main, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void wake_drain_thread() {
  DeviceState& state = device_state();
  state.wake.fetch_add(1, std::memory_order_release);
  wake_all(&state.wake);
}

bool stop_drain_thread(int64_t limit_ns) {
  DeviceState& state = device_state();
  state.stop.store(1, std::memory_order_release);
  wake_drain_thread();
  const int64_t until_ns = emit::monotonic_ns() + limit_ns;
  while (state.ended.load(std::memory_order_acquire) == 0) {
    const int64_t left_ns = until_ns - emit::monotonic_ns();
    if (left_ns <= 0) return false;
    wait_on(&state.ended, 0, left_ns);
  }
  return true;
}

}  // namespace idlescope::session
