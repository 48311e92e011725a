// About once a second: how much CPU this process, its loader workers, its cgroup and the whole
// machine have used, and how much they may.
//
// In: /proc, /sys/fs/cgroup, CPU clocks of the workers. Out: a CounterBatch packet. Called by
// the drain thread where there is one, else by the training thread when it takes a batch or
// ends a step; a call between two samples costs one clock comparison, a sample about 50
// microseconds. Never in loader workers.
#pragma once

#include <cstdint>

namespace idlescope::host {

inline constexpr int64_t kCounterPeriodNs = 1'000'000'000;

// Samples if a period has passed since the last one; returns whether it did.
bool sample_process_counters(int64_t now_ns);

// From now on a thread of ours samples: the training thread no longer does.
void sampling_thread_started();
bool has_sampling_thread();

// A loader worker (a child process) whose CPU time counts to the tree.
void worker_process_started(int64_t pid);

}  // namespace idlescope::host
