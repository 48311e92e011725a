#include "analysis/read/nsys_host.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/read/nsys_enums.h"
#include "analysis/read/plausible_time.h"

namespace idlescope::read {
namespace {

using Side = NsysSides::Side;

// NvtxPushPopRange, NvtxStartEndRange and their nvtxt twins.
bool is_range(int64_t event_type) {
  return event_type == 59 || event_type == 60 || event_type == 70 || event_type == 71;
}
bool is_mark(int64_t event_type) { return event_type == 34 || event_type == 65; }

// torch.autograd.profiler.emit_nvtx: "aten::to, op_id = 990347", "…, seq = 12, sizes = […]".
std::string_view without_torch_suffix(std::string_view text, bool& framework) {
  for (const std::string_view suffix : {", op_id = ", ", seq = "}) {
    const size_t at = text.find(suffix);
    if (at == text.npos) continue;
    framework = true;
    text = text.substr(0, at);
  }
  framework |= text.substr(0, 6) == "aten::";
  return text;
}

void take_mark(Side& to, Strings& strings, std::string_view text, uint32_t thread_id, Ns at_ns) {
  HostEvent event;
  event.kind = trace::EVENT_MARK;
  event.thread_id = thread_id;
  event.begin_ns = event.end_ns = at_ns;
  event.a = strings.add(text);
  to.builder.add_event(event);
}

void take_range(Side& to, std::string_view text, uint32_t thread_id, Ns begin_ns, Ns end_ns) {
  bool framework = false;
  const std::string_view name = without_torch_suffix(text, framework);
  if (to.marks.take(name, thread_id, begin_ns, end_ns) == ImportMarks::Taken::kWhole) return;
  to.marks.take_user_step(name, thread_id, begin_ns, end_ns);
  to.builder.add_range(name, framework ? trace::RANGE_FRAMEWORK_OP : trace::RANGE_NVTX, thread_id,
                       begin_ns, end_ns);
}

// Calls in which a thread sleeps until somebody else acts. ioctl, open, munmap and the like
// work on the CPU, though in the kernel.
bool sleeps(std::string_view call) {
  for (const std::string_view known : {"poll",
                                       "ppoll",
                                       "select",
                                       "pselect",
                                       "epoll_wait",
                                       "epoll_pwait",
                                       "sem_wait",
                                       "sem_timedwait",
                                       "sem_clockwait",
                                       "pthread_cond_wait",
                                       "pthread_cond_timedwait",
                                       "pthread_cond_clockwait",
                                       "pthread_join",
                                       "pthread_mutex_lock",
                                       "pthread_rwlock_rdlock",
                                       "pthread_rwlock_wrlock",
                                       "pthread_barrier_wait",
                                       "read",
                                       "pread",
                                       "pread64",
                                       "readv",
                                       "preadv",
                                       "fread",
                                       "fgets",
                                       "recv",
                                       "recvfrom",
                                       "recvmsg",
                                       "accept",
                                       "accept4",
                                       "connect",
                                       "nanosleep",
                                       "clock_nanosleep",
                                       "usleep",
                                       "sleep",
                                       "waitpid",
                                       "wait",
                                       "waitid",
                                       "wait4",
                                       "msgrcv",
                                       "sigwait",
                                       "flock",
                                       "fsync",
                                       "fdatasync",
                                       "futex"}) {
    if (call == known) return true;
  }
  return false;
}

struct Span {
  Ns begin_ns;
  Ns end_ns;
};

// Sorted, without overlap: a call may be traced inside another (fread, read).
std::vector<Span> merged(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::make_pair(a.begin_ns, a.end_ns) < std::make_pair(b.begin_ns, b.end_ns);
  });
  std::vector<Span> out;
  for (const Span& span : spans) {
    if (!out.empty() && span.begin_ns <= out.back().end_ns) {
      out.back().end_ns = std::max(out.back().end_ns, span.end_ns);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

// The CPU clock of a thread at the edges of its sleeps and at the CUDA calls around them, as if
// it ran at all other times. It may not have: a thread that lost its core looks busy here, as
// it does without these rows.
void add_cpu_clock(Side& to, uint32_t thread_id, const std::vector<Span>& sleeps,
                   const std::vector<Ns>& call_edges) {
  std::vector<Ns> times;
  for (const Span& sleep : sleeps) {
    times.push_back(sleep.begin_ns);
    times.push_back(sleep.end_ns);
    const auto after = std::lower_bound(call_edges.begin(), call_edges.end(), sleep.end_ns);
    if (after != call_edges.end()) times.push_back(*after);
    const auto behind = std::upper_bound(call_edges.begin(), call_edges.end(), sleep.begin_ns);
    if (behind != call_edges.begin()) times.push_back(*(behind - 1));
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  Ns asleep_ns = 0;  // before `sleep`
  auto sleep = sleeps.begin();
  for (const Ns at : times) {
    while (sleep != sleeps.end() && sleep->end_ns <= at) {
      asleep_ns += sleep->end_ns - sleep->begin_ns;
      ++sleep;
    }
    const Ns inside = sleep != sleeps.end() && sleep->begin_ns < at ? at - sleep->begin_ns : Ns{0};
    HostEvent event;
    event.kind = trace::EVENT_THREAD_CPU;
    event.thread_id = thread_id;
    event.begin_ns = event.end_ns = at;
    event.a = at - times.front() - asleep_ns - inside;
    to.builder.add_event(event);
  }
}

std::map<uint32_t, std::vector<Ns>> call_edges_by_thread(const Process& process) {
  std::map<uint32_t, std::vector<Ns>> edges;
  for (const Call& call : process.calls) {
    std::vector<Ns>& of_thread = edges[process.call_descriptors[call.descriptor].thread_id];
    of_thread.push_back(call.begin_ns);
    of_thread.push_back(call.end_ns);
  }
  for (auto& [thread_id, times] : edges) std::sort(times.begin(), times.end());
  return edges;
}

}  // namespace

void read_nsys_overheads(NsysSides& sides) {
  const auto take = [&sides](const SqliteRow& row, trace::OverheadKind kind) {
    Side* to = sides.find(nsys_process_of(row.integer(2)));
    Ns begin_ns = 0;
    Ns end_ns = 0;
    if (to == nullptr || !NsysSides::times(row, 0, 1, *to, begin_ns, end_ns)) return;
    to->builder.saw(trace::KIND_OVERHEAD);
    to->builder.add_overhead({kind, nsys_thread_of(row.integer(2)), begin_ns, end_ns});
  };
  sides.file().scan(
      "CUPTI_ACTIVITY_KIND_OVERHEAD", {"start", "end", "globalTid", "overheadType"},
      [&take](const SqliteRow& row) { take(row, nsys_overhead_kind(row.integer(3))); });
  sides.file().scan("PROFILER_OVERHEAD", {"start", "end", "globalTid"},
                    [&take](const SqliteRow& row) { take(row, trace::OVERHEAD_OWN); });
}

void read_nsys_annotations(NsysSides& sides) {
  sides.file().scan(
      "NVTX_EVENTS", {"start", "end", "eventType", "globalTid", "text", "textId"},
      [&sides](const SqliteRow& row) {
        const bool mark = is_mark(row.integer(2));
        // A range that never ended has no end.
        if (!(is_range(row.integer(2)) && row.has(1)) && !mark) return;
        Side* to = sides.find(nsys_process_of(row.integer(3)));
        Ns begin_ns = 0;
        Ns end_ns = 0;
        if (to == nullptr || !NsysSides::times(row, 0, mark ? 0 : 1, *to, begin_ns, end_ns)) return;
        std::string_view text = row.text(4);
        if (text.empty()) text = sides.text(row.integer(5));
        to->builder.saw(trace::KIND_NVTX);
        if (mark) {
          take_mark(*to, sides.recording().strings, text, nsys_thread_of(row.integer(3)), begin_ns);
        } else {
          take_range(*to, text, nsys_thread_of(row.integer(3)), begin_ns, end_ns);
        }
      });
}

void read_nsys_os_calls(NsysSides& sides) {
  std::map<Side*, std::map<uint32_t, std::vector<Span>>> sleeps_of;
  sides.file().scan("OSRT_API", {"start", "end", "globalTid", "nameId"}, [&](const SqliteRow& row) {
    Side* to = sides.find(nsys_process_of(row.integer(2)));
    if (to == nullptr || !sleeps(sides.text(row.integer(3)))) return;
    Ns begin_ns = 0;
    Ns end_ns = 0;
    if (!NsysSides::times(row, 0, 1, *to, begin_ns, end_ns)) return;
    if (!plausible_span(begin_ns, end_ns)) return;
    sleeps_of[to][nsys_thread_of(row.integer(2))].push_back({begin_ns, end_ns});
  });
  for (auto& [side, threads] : sleeps_of) {
    const auto edges = call_edges_by_thread(side->builder.process());
    for (auto& [thread_id, spans] : threads) {
      // Only of threads that feed the GPU: what others wait for says nothing about it.
      const auto of_thread = edges.find(thread_id);
      if (of_thread == edges.end()) continue;
      add_cpu_clock(*side, thread_id, merged(std::move(spans)), of_thread->second);
    }
  }
}

}  // namespace idlescope::read
