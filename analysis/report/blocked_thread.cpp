#include "analysis/report/blocked_thread.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace idlescope::report {
namespace {

// On average over the steps. With less, it may have been none at the moment that counts.
constexpr double kFreeCores = 1.5;

// A process whose main thread is off the CPU for that much of the time and that still uses one
// CPU has another thread that runs meanwhile; no more than one: they run one at a time.
constexpr double kMuch = 0.3;
constexpr double kOneLow = 0.85;
constexpr double kOneHigh = 1.2;

// All threads take turns there, whatever locks they have.
bool only_core(const Context& c) {
  return c.d.chosen_process < c.recording.processes.size() &&
         c.recording.processes[c.d.chosen_process].header.process().cpu_count() == 1;
}

}  // namespace

std::string sleeping_call(const Context& c) {
  constexpr std::array<std::string_view, 22> kSleeps = {
      "poll",    "ppoll",    "select",        "pselect",   "epoll_wait",      "epoll_pwait",
      "read",    "pread",    "recv",          "recvfrom",  "recvmsg",         "accept",
      "accept4", "sleep",    "usleep",        "nanosleep", "clock_nanosleep", "waitpid",
      "wait4",   "sem_wait", "sem_timedwait", "connect"};
  std::map<std::string, int64_t> by_call;
  int64_t all = 0;
  for (const diagnose::Gap& gap : c.d.gaps) {
    if (gap.top_leaf != HOST_BLOCKED) continue;
    all += gap.end_ns - gap.begin_ns;
    if (std::find(kSleeps.begin(), kSleeps.end(), gap.doing) != kSleeps.end()) {
      by_call[gap.doing] += gap.end_ns - gap.begin_ns;
    }
  }
  for (const auto& [call, ns] : by_call) {
    if (2 * ns > all) return call;
  }
  return "";
}

bool cores_were_free(const Context& c) { return c.d.free_cores >= kFreeCores; }

bool much_blocked(const Context& c) { return c.share(c.leaf_ns(HOST_BLOCKED)) >= kMuch; }

bool waits_for_lock(const Context& c) {
  if (c.cpp || !much_blocked(c) || !sleeping_call(c).empty()) return false;
  if (only_core(c)) return false;
  return c.d.process_cpus >= kOneLow && (cores_were_free(c) || c.d.process_cpus <= kOneHigh);
}

}  // namespace idlescope::report
