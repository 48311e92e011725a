#include "profiler/host/process_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "profiler/emit/process_identity.h"
#include "profiler/emit/small_file.h"
#include "profiler/emit/trace_file.h"
#include "profiler/host/counter_batch.h"

namespace idlescope::host {
namespace {

constexpr size_t kMaxWorkers = 256;

std::atomic<int64_t> last_sample_ns{0};
std::atomic<uint32_t> sampling_thread_generation{0};
std::atomic<int64_t> workers[kMaxWorkers];  // pids; 0: free

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

int64_t timeval_ns(const timeval& time) {
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_usec * int64_t{1000};
}

// The CPU clock of another process (the kernel's encoding, clock_getcpuclockid(3)): exact, and
// cheaper than its /proc files.
int64_t process_cpu_ns(int64_t pid) {
  return clock_ns(static_cast<clockid_t>((~static_cast<uint32_t>(pid) << 3) | 2));
}

int64_t tree_cpu_ns(int64_t own_ns) {
  int64_t sum_ns = own_ns;
  rusage ended{};  // children that were waited for
  if (getrusage(RUSAGE_CHILDREN, &ended) == 0) {
    sum_ns += timeval_ns(ended.ru_utime) + timeval_ns(ended.ru_stime);
  }
  for (std::atomic<int64_t>& worker : workers) {
    const int64_t pid = worker.load(std::memory_order_relaxed);
    if (pid == 0) continue;
    const int64_t spent_ns = process_cpu_ns(pid);
    if (spent_ns < 0) {
      worker.store(0, std::memory_order_relaxed);  // gone, and in RUSAGE_CHILDREN by now
    } else {
      sum_ns += spent_ns;
    }
  }
  return sum_ns;
}

// "usage_usec 123" of cgroup version 2.
int64_t cgroup_cpu_ns() {
  char text[4096];
  emit::read_small_file("/proc/self/cgroup", text, sizeof text);
  const char* line = strstr(text, "0::/");
  if (line == nullptr) return -1;
  char path[4300];
  const size_t length = strcspn(line + 3, "\n");
  snprintf(path, sizeof path, "/sys/fs/cgroup%.*s/cpu.stat", static_cast<int>(length), line + 3);
  char stat[1024];
  if (emit::read_small_file(path, stat, sizeof stat) == 0) return -1;
  const char* usage = strstr(stat, "usage_usec ");
  return usage == nullptr ? -1 : strtoll(usage + 11, nullptr, 10) * 1000;
}

// First line of /proc/stat: all but idle and iowait (proc(5)), in clock ticks.
int64_t system_busy_ns() {
  char text[512];
  if (emit::read_small_file("/proc/stat", text, sizeof text) == 0) return -1;
  if (strncmp(text, "cpu ", 4) != 0) return -1;
  const long rate = sysconf(_SC_CLK_TCK);
  if (rate <= 0) return -1;
  int64_t busy_ticks = 0;
  const char* at = text + 4;
  for (int field = 0; field < 8; ++field) {  // user nice system idle iowait irq softirq steal
    char* end = nullptr;
    const int64_t ticks = strtoll(at, &end, 10);
    if (end == at) break;
    if (field != 3 && field != 4) busy_ticks += ticks;
    at = end;
  }
  return busy_ticks * (1'000'000'000 / rate);
}

int64_t resident_bytes() {
  char text[128];
  if (emit::read_small_file("/proc/self/statm", text, sizeof text) == 0) return -1;
  char* rest = nullptr;
  strtoll(text, &rest, 10);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  return page_bytes <= 0 ? -1 : strtoll(rest, nullptr, 10) * page_bytes;
}

}  // namespace

bool sample_process_counters(int64_t now_ns) {
  int64_t last_ns = last_sample_ns.load(std::memory_order_relaxed);
  if (now_ns - last_ns < kCounterPeriodNs) return false;
  if (!last_sample_ns.compare_exchange_strong(last_ns, now_ns, std::memory_order_relaxed)) {
    return false;
  }
  if (!emit::recording_possible()) return false;
  CounterBatch batch;
  const int64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  batch.add(CounterKind::kProcessCpuNs, now_ns, own_ns);
  batch.add(CounterKind::kTreeCpuNs, now_ns, tree_cpu_ns(own_ns));
  batch.add(CounterKind::kCgroupCpuNs, now_ns, cgroup_cpu_ns());
  const uint32_t quota = emit::cgroup_quota_millicpu();
  if (quota != 0) batch.add(CounterKind::kCgroupQuotaMillicpu, now_ns, quota);
  batch.add(CounterKind::kSystemCpuBusyNs, now_ns, system_busy_ns());
  batch.add(CounterKind::kRssBytes, now_ns, resident_bytes());
  return batch.write();
}

void sampling_thread_started() {
  sampling_thread_generation.store(emit::file_generation(), std::memory_order_relaxed);
}

bool has_sampling_thread() {
  const uint32_t generation = sampling_thread_generation.load(std::memory_order_relaxed);
  return generation != 0 && generation == emit::file_generation();
}

void worker_process_started(int64_t pid) {
  if (pid <= 0) return;
  for (std::atomic<int64_t>& worker : workers) {
    int64_t free_slot = 0;
    if (worker.compare_exchange_strong(free_slot, pid, std::memory_order_relaxed)) return;
  }
}

}  // namespace idlescope::host
