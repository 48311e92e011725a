// What one fetch cost and why: wall, CPU, run queue, faults, bytes.
//
// In: two readings around a fetch, on the thread that runs it. Out: their difference. About
// 4 microseconds a reading. The thread clock is read first: it makes the kernel bring its
// own books up to date, else getrusage and schedstat lag by up to a tick (recorder.md II.5).
// Each source is optional (hidepid, gVisor, old kernels): −1 where it cannot be read.
#pragma once

#include <cstdint>

namespace idlescope::host {

struct FetchReading {
  int64_t wall_ns;
  int64_t thread_cpu_ns;
  int64_t process_cpu_ns;
  int64_t run_delay_ns;  // time runnable and not running
  int64_t major_faults;
  int64_t blocks_in;   // 512-byte blocks read from a block device
  int64_t bytes_read;  // by read-like calls, whatever the source (rchar)
};

// Keeps two descriptors a thread open and reopens them in the child of a fork (the old ones
// name the parent's thread).
FetchReading read_fetch_counters();
// Wall and thread CPU only (−1 for the rest): under a microsecond. For fetches so short that
// the full reading would be a large part of them.
FetchReading read_fetch_clocks();

// later − earlier; −1 stays −1.
FetchReading difference(const FetchReading& later, const FetchReading& earlier);

// Closes this thread's descriptors: at the end of a worker.
void forget_thread_files();

int64_t thread_cpu_ns();

}  // namespace idlescope::host
