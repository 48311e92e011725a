#include "analysis/model/clock_fit.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "analysis/read/plausible_time.h"

namespace idlescope::model {
namespace {

using read::kNone;
using read::Ns;

// Larger disagreement is not skew but a wrong join; it is left alone and counted.
constexpr Ns kMaxShift = 1'000'000;
// Skew drifts: one shift holds for so long, and only where enough work constrains it.
constexpr Ns kChunk = 200'000'000;
constexpr size_t kChunkOps = 200;
constexpr Ns kTolerance = 1'000;

void move_times(read::Process& process, Ns by) {
  for (read::Op& op : process.ops) op.begin_ns += by, op.end_ns += by;
  for (read::Call& call : process.calls) call.begin_ns += by, call.end_ns += by;
  for (read::HostEvent& event : process.host_events) event.begin_ns += by, event.end_ns += by;
  for (read::Overhead& overhead : process.overheads) {
    overhead.begin_ns += by;
    overhead.end_ns += by;
  }
  for (read::Counter& counter : process.counters) counter.time_ns += by;
  for (read::Window& window : process.windows) window.begin_ns += by, window.end_ns += by;
  for (read::Collective& collective : process.collectives) {
    collective.begin_ns += by;
    collective.end_ns += by;
  }
  process.first_ns += by;
  process.last_ns += by;
}

// Moves processes of other hosts; those without a clock pair stay.
bool align_hosts(read::Recording& recording) {
  bool moved = false;
  const read::Process* reference = nullptr;
  for (read::Process& process : recording.processes) {
    if (!process.header.has_clock()) continue;
    if (reference == nullptr) {
      reference = &process;
      continue;
    }
    const bool same = process.header.process().host() == reference->header.process().host() &&
                      process.header.boot_id() == reference->header.boot_id();
    if (same) continue;
    const auto offset = [](const read::Process& p) {
      return p.header.clock().realtime_ns() - p.header.clock().monotonic_ns();
    };
    // Both lie within ±2^62 (the reader lets no other times in); times must stay plausible.
    Ns by = 0;
    if (__builtin_sub_overflow(offset(process), offset(*reference), &by) ||
        !read::plausible_time(by) || !read::plausible_time(process.first_ns + by) ||
        !read::plausible_time(process.last_ns + by)) {
      continue;
    }
    move_times(process, by);
    moved = true;
  }
  return moved;
}

// The k-th largest of `values`, where k grows with their number: one odd record moves
// nothing.
Ns robust_largest(std::vector<Ns>& values, size_t population) {
  const size_t k = std::max<size_t>(3, population / 1000);
  if (values.size() < k) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(k) - 1, values.end(),
                   std::greater<>());
  return values[k - 1];
}

constexpr Ns kUnbound = -(Ns{1} << 62);

struct Bound {
  // kUnbound: nothing says so.
  Ns early = kUnbound;  // op begins before its launch call by this much (> 0: broken)
  Ns late = kUnbound;   // op ends after the sync that awaited it by this much
};

// For each op of one device what its launch and the syncs say.
class DeviceFit {
 public:
  DeviceFit(read::Process& process, uint32_t device) : process_(process) {
    for (uint32_t i = 0; i < process.ops.size(); ++i) {
      const uint32_t op_device = process.op_descriptors[process.ops[i].descriptor].device;
      if (op_device == device) ops_.push_back(i);
    }
    if (ops_.empty()) return;
    bounds_.resize(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i) {
      const read::Op& op = process.ops[ops_[i]];
      if (op.call == kNone) continue;
      bounds_[i].early = process.calls[op.call].begin_ns - op.begin_ns;
    }
    find_late();
  }

  void run(ClockFit& result) {
    size_t first = 0;
    Ns previous_end = INT64_MIN;
    while (first < ops_.size()) {
      const size_t last = chunk_end(first);
      const Ns shift = fit(first, last, result);
      Ns end = INT64_MIN;
      Ns applied = shift;
      if (previous_end != INT64_MIN) {
        applied = std::max(applied, previous_end - process_.ops[ops_[first]].begin_ns);
      }
      if (std::abs(applied) > kMaxShift) applied = 0;
      for (size_t i = first; i < last; ++i) {
        read::Op& op = process_.ops[ops_[i]];
        op.begin_ns += applied;
        op.end_ns += applied;
        end = std::max(end, op.end_ns);
      }
      result.largest_shift_ns = std::max(result.largest_shift_ns, std::abs(applied));
      previous_end = end;
      first = last;
    }
  }

 private:
  // The last op launched before a stream or device sync was awaited by it.
  void find_late() {
    std::vector<size_t> by_launch;
    by_launch.reserve(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (process_.ops[ops_[i]].call != kNone) by_launch.push_back(i);
    }
    const auto launch = [&](size_t i) {
      return process_.calls[process_.ops[ops_[i]].call].begin_ns;
    };
    std::sort(by_launch.begin(), by_launch.end(),
              [&](size_t a, size_t b) { return launch(a) < launch(b); });
    for (const read::Call& call : process_.calls) {
      if (call.parent != kNone) continue;
      const read::CallDescriptor& descriptor = process_.call_descriptors[call.descriptor];
      if (descriptor.call_class != trace::CALL_DEVICE_SYNC &&
          descriptor.call_class != trace::CALL_STREAM_SYNC) {
        continue;
      }
      auto it = std::partition_point(by_launch.begin(), by_launch.end(),
                                     [&](size_t i) { return launch(i) < call.begin_ns; });
      for (int steps = 0; it != by_launch.begin() && steps < 64; ++steps) {
        --it;
        const read::Op& op = process_.ops[ops_[*it]];
        const bool awaited = descriptor.call_class == trace::CALL_DEVICE_SYNC ||
                             process_.op_descriptors[op.descriptor].stream == descriptor.stream;
        if (!awaited) continue;
        if (op.window == call.window) {
          bounds_[*it].late = std::max(bounds_[*it].late, op.end_ns - call.end_ns);
        }
        break;
      }
    }
  }

  uint32_t thread_of(const read::Call& call) const {
    return process_.call_descriptors[call.descriptor].thread_id;
  }

  // A chunk ends at a point where nothing runs.
  size_t chunk_end(size_t first) const {
    const Ns begin = process_.ops[ops_[first]].begin_ns;
    Ns end = process_.ops[ops_[first]].end_ns;
    for (size_t i = first + 1; i < ops_.size(); ++i) {
      const read::Op& op = process_.ops[ops_[i]];
      if (op.begin_ns - begin >= kChunk && i - first >= kChunkOps && op.begin_ns > end) return i;
      end = std::max(end, op.end_ns);
    }
    return ops_.size();
  }

  Ns fit(size_t first, size_t last, ClockFit& result) {
    std::vector<Ns> early, late;
    for (size_t i = first; i < last; ++i) {
      if (bounds_[i].early > 0 && bounds_[i].early <= kMaxShift) early.push_back(bounds_[i].early);
      if (bounds_[i].late > 0 && bounds_[i].late <= kMaxShift) late.push_back(bounds_[i].late);
    }
    const Ns forward = robust_largest(early, last - first);
    const Ns back = robust_largest(late, late.size());
    const Ns shift = forward > 0 ? forward : -back;
    result.checked += last - first;
    for (size_t i = first; i < last; ++i) {
      if (bounds_[i].early - shift > kTolerance || bounds_[i].late + shift > kTolerance) {
        ++result.violations;
      }
    }
    return shift;
  }

  read::Process& process_;
  std::vector<uint32_t> ops_;
  std::vector<Bound> bounds_;
};

}  // namespace

ClockFit fit_clocks(read::Recording& recording) {
  ClockFit result;
  result.other_hosts = align_hosts(recording);
  for (read::Process& process : recording.processes) {
    if (process.ops.empty()) continue;
    for (uint32_t device = 0; device <= process.devices.size(); ++device) {
      DeviceFit(process, device < process.devices.size() ? device : kNone).run(result);
    }
    // Shifts differ by device and time; the table's order is by begin over all devices.
    const auto before = [](const read::Op& a, const read::Op& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns < b.end_ns;
    };
    if (result.largest_shift_ns > 0 &&
        !std::is_sorted(process.ops.begin(), process.ops.end(), before)) {
      std::stable_sort(process.ops.begin(), process.ops.end(), before);
    }
  }
  return result;
}

}  // namespace idlescope::model
