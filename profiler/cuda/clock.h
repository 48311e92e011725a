// Host clock and kernel thread id, for code that runs inside CUDA callbacks.
//
// In: nothing. Out: CLOCK_MONOTONIC ns (the clock of the whole recording), gettid.
// No allocation, no lock, no exception.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace idlescope::cuda {

inline int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline uint32_t kernel_thread_id() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

}  // namespace idlescope::cuda
