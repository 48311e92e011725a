#include "analysis/model/device_steps.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/model/steady_part.h"

namespace idlescope::model {
namespace {

// Boundaries that lie where the window recorded the host.
Range boundaries_inside(const std::vector<Ns>& boundaries, Ns begin_ns, Ns end_ns) {
  const auto first = std::lower_bound(boundaries.begin(), boundaries.end(), begin_ns);
  const auto last = std::upper_bound(first, boundaries.end(), end_ns);
  return {static_cast<size_t>(first - boundaries.begin()),
          static_cast<size_t>(last - boundaries.begin())};
}

void cut_window(const read::Process& process, const DeviceTimeline& timeline, uint32_t w,
                const StepTrack& track, std::vector<DeviceStep>& out) {
  const std::vector<Ns>& boundaries = track.boundaries;
  const WindowSpan& span = timeline.windows[w];
  const Range inside = boundaries_inside(boundaries, span.begin_ns, span.end_ns);
  if (inside.size() < 2) return;
  // Slot s holds ops launched in [boundary s-1, boundary s) of those inside.
  std::vector<Ns> last_end(inside.size() + 1, INT64_MIN);
  std::vector<uint64_t> launched(inside.size() + 1, 0);
  const auto begin = boundaries.begin() + static_cast<ptrdiff_t>(inside.first);
  const auto end = boundaries.begin() + static_cast<ptrdiff_t>(inside.last);
  size_t hint = 0;
  std::vector<Ns> launches;
  if (!track.on_device) launches = launch_times(process, timeline, span);
  for (size_t i = span.first; i < span.last; ++i) {
    const read::Op& op = process.ops[timeline.ops[i]];
    const Ns launch = track.on_device ? op.begin_ns : launches[i - span.first];
    // Ops come nearly in launch order: try the last slot before searching.
    const bool fits = (hint == 0 || begin[static_cast<ptrdiff_t>(hint) - 1] <= launch) &&
                      (hint == inside.size() || launch < begin[static_cast<ptrdiff_t>(hint)]);
    if (!fits) hint = static_cast<size_t>(std::upper_bound(begin, end, launch) - begin);
    last_end[hint] = std::max(last_end[hint], op.end_ns);
    ++launched[hint];
  }
  const size_t first_step = out.size();
  Ns drained = span.begin_ns;
  size_t open = SIZE_MAX;  // slot whose boundary begins the step being built
  Ns open_begin = 0;
  uint64_t ops = 0;
  for (size_t s = 0; s < inside.size(); ++s) {
    drained = std::max(drained, last_end[s]);
    const Ns boundary = std::max(begin[static_cast<ptrdiff_t>(s)], drained);
    if (open != SIZE_MAX) {
      ops += launched[s];
      if (ops == 0) continue;  // launched nothing: not a step of its own
      if (boundary > open_begin) {
        out.push_back(
            {open_begin, boundary, w, static_cast<uint32_t>(inside.first + open), ops, false});
      }
    }
    open = s;
    open_begin = boundary;
    ops = 0;
  }
  // Ops that ran after the window's end are missing, from the last launched ones backwards.
  while (out.size() >= first_step + 3) {
    uint64_t least = UINT64_MAX;  // of a complete step
    for (size_t i = first_step; i + 1 < out.size(); ++i) least = std::min(least, out[i].ops);
    if (10 * out.back().ops >= 9 * least) break;
    out.pop_back();
  }
}

bool first_use_or_allocation(trace::CallClass call_class) {
  switch (call_class) {
    case trace::CALL_ALLOC_DEVICE:
    case trace::CALL_FREE_DEVICE:
    case trace::CALL_ALLOC_PINNED:
    case trace::CALL_FREE_PINNED:
    case trace::CALL_MODULE_LOAD:
    case trace::CALL_GRAPH_INSTANTIATE:
    case trace::CALL_OTHER:
      return true;
    default:
      return false;
  }
}

// Calls that were the first to launch some function.
std::unordered_set<uint32_t> first_launches(const read::Process& process,
                                            const DeviceTimeline& timeline) {
  std::unordered_set<uint32_t> names;
  std::unordered_set<uint32_t> calls;
  for (const uint32_t i : timeline.ops) {
    const read::Op& op = process.ops[i];
    if (op.call == kNone) continue;
    if (names.insert(process.op_descriptors[op.descriptor].name).second) calls.insert(op.call);
  }
  return calls;
}

// Begin of the last op that was the first of its function, where at least 70 % of the ops
// come after it: until then a loop meets its functions for the first time. The window's
// begin where new functions keep coming.
Ns last_new_function(const read::Process& process, const DeviceTimeline& timeline,
                     const WindowSpan& window) {
  std::unordered_set<uint32_t> names;
  Ns last = process.ops[timeline.ops[window.first]].begin_ns;
  const Ns begin = last;
  const size_t limit = window.first + (window.last - window.first) * 3 / 10;
  for (size_t i = window.first; i < window.last; ++i) {
    const read::Op& op = process.ops[timeline.ops[i]];
    if (!names.insert(process.op_descriptors[op.descriptor].name).second) continue;
    if (i > limit) return begin;
    last = op.begin_ns;
  }
  return last;
}

}  // namespace

Ns launch_time(const read::Process& process, const read::Op& op) {
  return op.call == kNone ? op.begin_ns : process.calls[op.call].begin_ns;
}

std::vector<Ns> launch_times(const read::Process& process, const DeviceTimeline& timeline,
                             const WindowSpan& window) {
  std::vector<Ns> times(window.last - window.first);
  std::vector<Ns> next(process.streams.size() + 1, INT64_MAX);
  for (size_t i = window.last; i-- > window.first;) {
    const read::Op& op = process.ops[timeline.ops[i]];
    Ns& on_stream = next[std::min<size_t>(process.op_descriptors[op.descriptor].stream,
                                          process.streams.size())];
    if (op.call != kNone) on_stream = process.calls[op.call].begin_ns;
    times[i - window.first] = std::min(op.call != kNone ? on_stream : op.begin_ns, on_stream);
  }
  return times;
}

std::vector<DeviceStep> cut_device_steps(const read::Process& process,
                                         const DeviceTimeline& timeline, const StepTrack& track) {
  std::vector<DeviceStep> steps;
  for (uint32_t w = 0; w < timeline.windows.size(); ++w) {
    cut_window(process, timeline, w, track, steps);
  }
  return steps;
}

void select_steady(std::vector<DeviceStep>& steps, const StepTrack& track, Ns steady_from_ns) {
  std::vector<size_t> candidates;
  std::vector<int64_t> durations;
  for (size_t i = 0; i < steps.size(); ++i) {
    const DeviceStep& step = steps[i];
    if (step.begin_ns < steady_from_ns) continue;
    // By when the step was launched: the device may be behind.
    const size_t h = step.host_step;
    const bool launched = !track.on_device && h + 1 < track.boundaries.size();
    const Ns from = launched ? track.boundaries[h] : step.begin_ns;
    const Ns to = launched ? track.boundaries[h + 1] : step.end_ns;
    if (track.in_evaluation(from, to)) continue;
    candidates.push_back(i);
    durations.push_back(step.duration_ns());
  }
  if (candidates.empty()) return;
  const Range range = steady_range(durations);
  for (size_t i = range.first; i < range.last; ++i) steps[candidates[i]].steady = true;
}

DeviceSteps cut_without_steps(const read::Process& process, const DeviceTimeline& timeline) {
  DeviceSteps result;
  const std::unordered_set<uint32_t> first = first_launches(process, timeline);
  Ns device_span = 0;
  Ns kept_span = 0;
  size_t kept_ops = 0;
  for (uint32_t w = 0; w < timeline.windows.size(); ++w) {
    const WindowSpan& window = timeline.windows[w];
    const Ns begin = process.ops[timeline.ops[window.first]].begin_ns;
    Ns end = begin;
    for (size_t i = window.first; i < window.last; ++i) {
      end = std::max(end, process.ops[timeline.ops[i]].end_ns);
    }
    const Ns limit = std::max<Ns>(10'000'000, (end - begin) / 50);
    Ns warm = begin;
    for (uint32_t c = 0; c < process.calls.size(); ++c) {
      const read::Call& call = process.calls[c];
      if (call.end_ns - call.begin_ns <= limit || call.end_ns <= warm || call.begin_ns >= end) {
        continue;
      }
      const trace::CallClass call_class = process.call_descriptors[call.descriptor].call_class;
      if (first_use_or_allocation(call_class) ||
          (call_class == trace::CALL_LAUNCH && first.contains(c))) {
        warm = call.end_ns;
      }
    }
    warm = std::max(warm, last_new_function(process, timeline, window));
    device_span += end - begin;
    result.warmup_ns += std::min(warm, end) - begin;
    if (warm >= end) continue;
    kept_span += end - warm;
    uint64_t ops = 0;
    for (size_t i = window.first; i < window.last; ++i) {
      if (process.ops[timeline.ops[i]].begin_ns >= warm) ++ops;
    }
    kept_ops += ops;
    result.spans.push_back({warm, end, w, kNone, ops, true});
  }
  const double kept_time =
      device_span > 0 ? static_cast<double>(kept_span) / static_cast<double>(device_span) : 0;
  const double kept_share =
      static_cast<double>(kept_ops) / static_cast<double>(std::max<size_t>(1, timeline.ops.size()));
  // Long compiling before nearly all of the work is warm-up, not the recording's subject.
  result.startup_only = kept_share < 0.3 || (kept_time < 0.5 && kept_share < 0.9);
  if (result.spans.empty()) {
    // Nothing but start-up: its time still needs an owner.
    for (uint32_t w = 0; w < timeline.windows.size(); ++w) {
      const WindowSpan& window = timeline.windows[w];
      const Ns begin = process.ops[timeline.ops[window.first]].begin_ns;
      if (window.end_ns > begin) {
        result.spans.push_back({begin, window.end_ns, w, kNone, window.last - window.first, true});
      }
    }
  }
  return result;
}

}  // namespace idlescope::model
