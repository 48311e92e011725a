#include "analysis/read/arrange.h"

#include <algorithm>
#include <thread>
#include <tuple>

namespace idlescope::read {
namespace {

// Below this, starting a thread costs more than it saves.
constexpr size_t kWorthAThread = 200'000;

// Ties are broken by everything that tells two records apart, so that the order of packets
// in the file does not show.
void sort_ops(std::vector<Op>& ops) {
  const auto before = [](const Op& a, const Op& b) {
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    return std::tie(a.end_ns, a.window, a.correlation, a.descriptor) <
           std::tie(b.end_ns, b.window, b.correlation, b.descriptor);
  };
  if (!std::is_sorted(ops.begin(), ops.end(), before)) std::sort(ops.begin(), ops.end(), before);
}

// Per thread, an enclosing call comes before what it encloses; of two calls with the same
// extent the runtime call is the outer one.
void sort_calls(std::vector<Call>& calls, const std::vector<CallDescriptor>& descriptors) {
  const auto before = [&descriptors](const Call& a, const Call& b) {
    const CallDescriptor& da = descriptors[a.descriptor];
    const CallDescriptor& db = descriptors[b.descriptor];
    if (da.thread_id != db.thread_id) return da.thread_id < db.thread_id;
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    if (da.driver != db.driver) return db.driver;
    return std::tie(a.window, a.correlation, a.descriptor) <
           std::tie(b.window, b.correlation, b.descriptor);
  };
  if (!std::is_sorted(calls.begin(), calls.end(), before)) {
    std::sort(calls.begin(), calls.end(), before);
  }
}

void find_parents(Process& process) {
  std::vector<uint32_t> open;
  uint32_t thread_id = 0;
  for (uint32_t i = 0; i < process.calls.size(); ++i) {
    Call& call = process.calls[i];
    const uint32_t own_thread = process.call_descriptors[call.descriptor].thread_id;
    if (own_thread != thread_id) {
      open.clear();
      thread_id = own_thread;
    }
    while (!open.empty() && process.calls[open.back()].end_ns <= call.begin_ns &&
           process.calls[open.back()].end_ns < call.end_ns) {
      open.pop_back();
    }
    // A call that only overlaps its predecessor is not inside it.
    size_t depth = open.size();
    while (depth > 0 && process.calls[open[depth - 1]].end_ns < call.end_ns) --depth;
    call.parent = depth > 0 ? open[depth - 1] : kNone;
    open.push_back(i);
  }
}

void sort_host_events(std::vector<HostEvent>& events) {
  const auto before = [](const HostEvent& a, const HostEvent& b) {
    if (a.thread_id != b.thread_id) return a.thread_id < b.thread_id;
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    return std::tie(a.kind, a.iterator, a.epoch, a.batch, a.a, a.b, a.c) <
           std::tie(b.kind, b.iterator, b.epoch, b.batch, b.a, b.b, b.c);
  };
  if (!std::is_sorted(events.begin(), events.end(), before)) {
    std::sort(events.begin(), events.end(), before);
  }
}

struct Extent {
  bool any = false;
  Ns first_ns = 0;
  Ns last_ns = 0;
  void add(Ns begin_ns, Ns end_ns) {
    first_ns = any ? std::min(first_ns, begin_ns) : begin_ns;
    last_ns = any ? std::max(last_ns, end_ns) : end_ns;
    any = true;
  }
};

void find_extents(Process& process) {
  Extent all;
  std::vector<Extent> windows(process.windows.size());
  const auto add = [&](uint32_t window, Ns begin_ns, Ns end_ns) {
    all.add(begin_ns, end_ns);
    if (window < windows.size()) windows[window].add(begin_ns, end_ns);
  };
  for (const Op& op : process.ops) add(op.window, op.begin_ns, op.end_ns);
  for (const Call& call : process.calls) add(call.window, call.begin_ns, call.end_ns);
  for (const HostEvent& event : process.host_events) all.add(event.begin_ns, event.end_ns);
  for (const Overhead& overhead : process.overheads) {
    all.add(overhead.begin_ns, overhead.end_ns);
  }
  for (const Counter& counter : process.counters) all.add(counter.time_ns, counter.time_ns);
  for (size_t i = 0; i < windows.size(); ++i) {
    Window& window = process.windows[i];
    if (!window.closed) {
      window.end_ns = std::max(window.begin_ns, windows[i].any ? windows[i].last_ns : 0);
    }
    all.add(window.begin_ns, window.end_ns);
  }
  process.first_ns = all.first_ns;
  process.last_ns = all.last_ns;
}

JoinCounts join_ops(Process& process) {
  const CallIndex index(process);
  JoinCounts counts;
  for (Op& op : process.ops) {
    ++counts.ops;
    op.call = index.find(op.window, op.correlation);
    if (op.call != kNone) ++counts.joined;
  }
  return counts;
}

}  // namespace

CallIndex::CallIndex(const Process& process) {
  struct Span {
    uint32_t first = UINT32_MAX;
    uint32_t last = 0;
    uint64_t count = 0;
  };
  windows_.resize(process.windows.size() + 1);
  std::vector<Span> spans(windows_.size());
  for (const Call& call : process.calls) {
    if (call.correlation == 0) continue;
    Span& span = spans[slot(call.window)];
    span.first = std::min(span.first, call.correlation);
    span.last = std::max(span.last, call.correlation);
    ++span.count;
  }
  for (size_t i = 0; i < windows_.size(); ++i) {
    if (spans[i].count == 0) continue;
    const uint64_t width = uint64_t{spans[i].last} - spans[i].first + 1;
    if (width <= 4 * spans[i].count + 1024) {
      windows_[i].first = spans[i].first;
      windows_[i].dense.assign(static_cast<size_t>(width), kNone);
    } else {
      windows_[i].sorted.reserve(static_cast<size_t>(spans[i].count));
    }
  }
  const auto outer = [&process](uint32_t a, uint32_t b) {
    const Call& call_a = process.calls[a];
    const Call& call_b = process.calls[b];
    if (call_a.begin_ns != call_b.begin_ns) return call_a.begin_ns < call_b.begin_ns;
    if (call_a.end_ns != call_b.end_ns) return call_a.end_ns > call_b.end_ns;
    return a < b;
  };
  for (uint32_t i = 0; i < process.calls.size(); ++i) {
    const Call& call = process.calls[i];
    if (call.correlation == 0) continue;
    PerWindow& window = windows_[slot(call.window)];
    if (window.dense.empty()) {
      window.sorted.push_back({call.correlation, i});
    } else {
      uint32_t& best = window.dense[call.correlation - window.first];
      if (best == kNone || outer(i, best)) best = i;
    }
  }
  for (PerWindow& window : windows_) {
    std::sort(window.sorted.begin(), window.sorted.end(), [&](const Keyed& a, const Keyed& b) {
      return a.correlation != b.correlation ? a.correlation < b.correlation : outer(a.call, b.call);
    });
  }
}

uint32_t CallIndex::find(uint32_t window_index, uint32_t correlation) const {
  if (correlation == 0) return kNone;
  const PerWindow& window = windows_[slot(window_index)];
  if (!window.dense.empty()) {
    const uint32_t at = correlation - window.first;  // wraps to large below `first`
    return at < window.dense.size() ? window.dense[at] : kNone;
  }
  const auto found = std::lower_bound(
      window.sorted.begin(), window.sorted.end(), correlation,
      [](const Keyed& keyed, uint32_t value) { return keyed.correlation < value; });
  return found != window.sorted.end() && found->correlation == correlation ? found->call : kNone;
}

JoinCounts arrange(Process& process) {
  const auto sort_host_side = [&process] {
    sort_calls(process.calls, process.call_descriptors);
    find_parents(process);
    sort_host_events(process.host_events);
  };
  if (process.ops.size() > kWorthAThread && process.calls.size() > kWorthAThread) {
    std::thread host_side(sort_host_side);
    sort_ops(process.ops);
    host_side.join();
  } else {
    sort_ops(process.ops);
    sort_host_side();
  }
  std::sort(process.overheads.begin(), process.overheads.end(),
            [](const Overhead& a, const Overhead& b) {
              return std::tie(a.begin_ns, a.end_ns, a.thread_id, a.kind) <
                     std::tie(b.begin_ns, b.end_ns, b.thread_id, b.kind);
            });
  std::sort(process.counters.begin(), process.counters.end(),
            [](const Counter& a, const Counter& b) {
              return std::tie(a.time_ns, a.kind, a.device, a.value) <
                     std::tie(b.time_ns, b.kind, b.device, b.value);
            });
  std::sort(process.collectives.begin(), process.collectives.end(),
            [](const Collective& a, const Collective& b) {
              return std::tie(a.begin_ns, a.communicator, a.sequence, a.thread_id) <
                     std::tie(b.begin_ns, b.communicator, b.sequence, b.thread_id);
            });
  std::sort(process.clock_pairs.begin(), process.clock_pairs.end(),
            [](const trace::ClockPair& a, const trace::ClockPair& b) {
              return std::make_tuple(a.monotonic_ns(), a.realtime_ns(), a.cupti_ns()) <
                     std::make_tuple(b.monotonic_ns(), b.realtime_ns(), b.cupti_ns());
            });
  find_extents(process);
  return join_ops(process);
}

}  // namespace idlescope::read
