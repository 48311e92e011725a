#include "analysis/read/clock_map.h"

#include <algorithm>

#include "analysis/read/plausible_time.h"

namespace idlescope::read {
namespace {

__extension__ typedef __int128 Int128;  // an hour times an hour, in ns, does not fit 64 bits

// The line through two pairs, or an offset where there is only one.
struct Map {
  Ns cupti_ns = 0;
  Ns monotonic_ns = 0;
  Ns cupti_span_ns = 0;
  Ns monotonic_span_ns = 0;

  // Past ±kLatestNs: one beyond it.
  Ns operator()(Ns time_ns) const {
    Int128 past = Int128{time_ns} - cupti_ns;
    if (cupti_span_ns > 0) past = past * monotonic_span_ns / cupti_span_ns;
    const Int128 mapped = past + monotonic_ns;
    if (mapped > kLatestNs) return kLatestNs + 1;
    if (mapped < -kLatestNs) return -kLatestNs - 1;
    return static_cast<Ns>(mapped);
  }
};

}  // namespace

uint64_t map_device_clock(Process& process) {
  std::vector<Map> maps(process.windows.size());
  std::vector<bool> mapped(process.windows.size(), false);
  bool any = false;
  for (size_t i = 0; i < process.windows.size(); ++i) {
    Window& window = process.windows[i];
    if (window.begin.clock() != trace::WindowBegin::CLOCK_CUPTI) continue;
    const trace::ClockPair* first = nullptr;
    const trace::ClockPair* last = nullptr;
    for (const trace::ClockPair& pair : process.clock_pairs) {
      if (pair.cupti_ns() == 0 || pair.window_id() != window.id) continue;
      if (first == nullptr || pair.cupti_ns() < first->cupti_ns()) first = &pair;
      if (last == nullptr || pair.cupti_ns() > last->cupti_ns()) last = &pair;
    }
    if (first == nullptr) continue;
    maps[i] = {first->cupti_ns(), first->monotonic_ns(), last->cupti_ns() - first->cupti_ns(),
               last->monotonic_ns() - first->monotonic_ns()};
    window.begin.set_clock(trace::WindowBegin::CLOCK_MONOTONIC_HOST);
    mapped[i] = any = true;
  }
  if (!any) return 0;
  for (Op& op : process.ops) {
    if (op.window >= maps.size() || !mapped[op.window]) continue;
    op.begin_ns = maps[op.window](op.begin_ns);
    op.end_ns = std::max(op.begin_ns, maps[op.window](op.end_ns));
  }
  const auto kept = std::remove_if(process.ops.begin(), process.ops.end(), [](const Op& op) {
    return !plausible_span(op.begin_ns, op.end_ns);
  });
  const uint64_t left_out = static_cast<uint64_t>(process.ops.end() - kept);
  process.ops.erase(kept, process.ops.end());
  return left_out;
}

}  // namespace idlescope::read
