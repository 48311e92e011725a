#include "profiler/host/worker_clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "profiler/emit/trace_file.h"

namespace idlescope::host {
namespace {

constexpr int kNotOpened = 0;
constexpr int kUnavailable = -1;

// One file of /proc/thread-self, kept open. A job that closes all its descriptors may get our
// number for a file of its own: pread moves nothing there, and content of another shape ends
// the use of it.
struct ThreadFile {
  int descriptor;  // + 1; kNotOpened or kUnavailable
  uint32_t generation;
};
thread_local ThreadFile schedstat_file;
thread_local ThreadFile io_file;
// Our own reads count in rchar; taken off again.
thread_local int64_t own_bytes_read;

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

int open_high(const char* path) {
  const int low = open(path, O_RDONLY | O_CLOEXEC);
  if (low < 0) return -1;
  // Out of the way of jobs that expect small numbers.
  const int high = fcntl(low, F_DUPFD_CLOEXEC, 400);
  if (high < 0) return low;
  close(low);
  return high;
}

size_t read_thread_file(ThreadFile* file, const char* path, char* out, size_t capacity) {
  const uint32_t generation = emit::file_generation();
  if (file->descriptor == kNotOpened || file->generation != generation) {
    // A forked child leaves the inherited descriptor to exec or exit: its number may be the
    // job's by now.
    file->descriptor = open_high(path) + 1;
    if (file->descriptor == 0) file->descriptor = kUnavailable;
    file->generation = generation;
  }
  if (file->descriptor == kUnavailable) return 0;
  const ssize_t size = pread(file->descriptor - 1, out, capacity - 1, 0);
  if (size <= 0) {
    file->descriptor = kUnavailable;
    return 0;
  }
  out[size] = '\0';
  own_bytes_read += size;
  return static_cast<size_t>(size);
}

// "cpu_ns run_delay_ns timeslices"
int64_t run_delay_ns() {
  char text[96];
  if (read_thread_file(&schedstat_file, "/proc/thread-self/schedstat", text, sizeof text) == 0) {
    return -1;
  }
  char* rest = nullptr;
  strtoull(text, &rest, 10);
  if (rest == text || *rest != ' ') {
    schedstat_file.descriptor = kUnavailable;
    return -1;
  }
  return static_cast<int64_t>(strtoull(rest, nullptr, 10));
}

int64_t bytes_read() {
  char text[256];
  const int64_t own_bytes = own_bytes_read;  // the read that follows is not in its own answer
  if (read_thread_file(&io_file, "/proc/thread-self/io", text, sizeof text) == 0) return -1;
  static constexpr char kKey[] = "rchar: ";
  if (strncmp(text, kKey, sizeof kKey - 1) != 0) {
    io_file.descriptor = kUnavailable;
    return -1;
  }
  return static_cast<int64_t>(strtoull(text + sizeof kKey - 1, nullptr, 10)) - own_bytes;
}

int64_t minus(int64_t later, int64_t earlier) {
  return later < 0 || earlier < 0 ? -1 : later - earlier;
}

}  // namespace

void forget_thread_files() {
  for (ThreadFile* file : {&schedstat_file, &io_file}) {
    if (file->descriptor > 0 && file->generation == emit::file_generation()) {
      close(file->descriptor - 1);
    }
    file->descriptor = kNotOpened;
  }
}

int64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

FetchReading read_fetch_counters() {
  FetchReading now{};
  now.wall_ns = clock_ns(CLOCK_MONOTONIC);
  now.thread_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  now.process_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    now.major_faults = usage.ru_majflt;
    now.blocks_in = usage.ru_inblock;
  } else {
    now.major_faults = now.blocks_in = -1;
  }
  now.run_delay_ns = run_delay_ns();
  now.bytes_read = bytes_read();
  return now;
}

FetchReading read_fetch_clocks() {
  return {clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID), -1, -1, -1, -1, -1};
}

FetchReading difference(const FetchReading& later, const FetchReading& earlier) {
  return {minus(later.wall_ns, earlier.wall_ns),
          minus(later.thread_cpu_ns, earlier.thread_cpu_ns),
          minus(later.process_cpu_ns, earlier.process_cpu_ns),
          minus(later.run_delay_ns, earlier.run_delay_ns),
          minus(later.major_faults, earlier.major_faults),
          minus(later.blocks_in, earlier.blocks_in),
          minus(later.bytes_read, earlier.bytes_read)};
}

}  // namespace idlescope::host
