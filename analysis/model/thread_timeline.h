// What each host thread did: one row of disjoint segments a thread.
//
// In: calls, host events and overhead records of one process. Out: per thread
//   segments  the innermost interval that has a class of its own (driver call, loader,
//             compile, checkpoint, overhead) at each time, or mere activity (framework
//             op, query) where no classed interval encloses it;
//   contexts  the innermost named range (optimizer, backward, user, Python frame); they
//             name host time but are neither activity nor a cause.
//
//   next()      ├────────────────────────┤          segments
//   aten::stack      ├────┤                         ├──── next() ────────────┤   ├launch┤
//   launch                              ├──────┤        (framework ops inside a
//                                                        classed interval do not show)
//
// Invariants: segments of a thread are disjoint and in time order, so the host chain is
// a walk to lower indices; each recorded interval yields at most 1 + (intervals nested
// directly in it) segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::model {

using read::kNone;
using read::Ns;

enum class Source : uint8_t { kCall, kEvent, kOverhead };

struct Segment {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  uint32_t ref = kNone;  // Process::calls, host_events or overheads
  Source source = Source::kCall;
  bool classed = true;  // false: activity without a class
};

struct Context {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  trace::RangeCategory category{};  // of the innermost range that names a host leaf
  uint32_t name = 0;                // Strings: innermost range; 0: none
};

struct CpuSample {
  Ns time_ns = 0;
  Ns cpu_ns = 0;  // of the thread, cumulative
};

struct ThreadTimeline {
  uint32_t thread_id = 0;
  std::vector<Segment> segments;
  std::vector<Context> contexts;
  std::vector<CpuSample> cpu;
  uint64_t launches = 0;  // launch-like calls
  bool ran_work = false;  // framework ops, loader or non-query driver calls: can be the
                          // thread that another one waited for. Pollers cannot.

  // Index of the last segment that begins before `time_ns`, or npos.
  static constexpr size_t npos = static_cast<size_t>(-1);
  size_t last_before(Ns time_ns) const;
  // Innermost context that covers `time_ns`, or null.
  const Context* context_at(Ns time_ns) const;
};

// Per call of a process: its own class or, where that says nothing, the class of the
// driver call inside it (N2: outermost for time, innermost for class).
using CallClasses = std::vector<uint8_t>;  // trace::CallClass
CallClasses effective_classes(const read::Process& process);

// Kernel launch, copy, memset or graph launch: hands work to the device.
bool hands_out_work(trace::CallClass call_class);

struct ProcessThreads {
  std::vector<ThreadTimeline> threads;  // sorted by thread_id
  uint32_t main = kNone;                // index of the training loop's thread
  const ThreadTimeline* find(uint32_t thread_id) const;
  uint32_t index_of(uint32_t thread_id) const;
};

ProcessThreads build_threads(const read::Process& process, const CallClasses& classes);

}  // namespace idlescope::model
