#include "analysis/model/macro_steps.h"

#include <algorithm>
#include <map>

namespace idlescope::model {
namespace {

constexpr size_t kMinimumClosings = 3;

size_t count_between(const std::vector<Ns>& sorted, Ns begin_ns, Ns end_ns) {
  return static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), end_ns) -
                             std::lower_bound(sorted.begin(), sorted.end(), begin_ns));
}

// The commonest value, if at least 60 % have it; −1: none.
int64_t common_value(const std::vector<int64_t>& values) {
  std::map<int64_t, size_t> counts;
  for (const int64_t value : values) ++counts[value];
  for (const auto& [value, n] : counts) {
    if (5 * n >= 3 * values.size()) return value;
  }
  return -1;
}

}  // namespace

MacroSteps group_micro_steps(const std::vector<MicroStep>& micro, const WeightUpdates& updates) {
  MacroSteps out;
  for (const MicroStep& step : micro) out.boundaries.push_back(step.begin_ns);
  if (micro.size() < 2 || updates.times_ns.empty()) return out;

  const size_t n = micro.size();
  std::vector<bool> seen(n, false);
  std::vector<bool> closes(n, false);
  std::vector<size_t> closing;
  for (size_t i = 0; i + 1 < n; ++i) {
    seen[i] = updates.seen_in(micro[i].begin_ns, micro[i + 1].begin_ns);
    if (!seen[i]) continue;
    closes[i] = count_between(updates.times_ns, micro[i].begin_ns, micro[i + 1].begin_ns) > 0;
    if (closes[i]) closing.push_back(i);
  }
  if (closing.size() < kMinimumClosings) return out;
  std::vector<int64_t> distances;
  for (size_t i = 1; i < closing.size(); ++i) {
    const size_t from = closing[i - 1];
    const bool unbroken = std::all_of(seen.begin() + static_cast<ptrdiff_t>(from),
                                      seen.begin() + static_cast<ptrdiff_t>(closing[i]),
                                      [](bool known) { return known; });
    if (unbroken) distances.push_back(static_cast<int64_t>(closing[i] - from));
  }
  const int64_t m = common_value(distances);
  if (m < 1) return out;
  out.agrees = true;
  if (m == 1) return out;  // a batch without an update is a skipped step, not a micro-step
  out.micro_steps = static_cast<uint32_t>(m);

  // Loops count batches from the begin of a pass, so the number of the batch tells.
  std::vector<int64_t> phases;
  for (const size_t i : closing) {
    if (micro[i].batch >= 0) phases.push_back(micro[i].batch % m);
  }
  const int64_t phase = phases.size() == closing.size() ? common_value(phases) : -1;
  for (size_t i = 0; i < n; ++i) {
    if (seen[i]) continue;
    if (phase >= 0 && micro[i].batch >= 0) {
      closes[i] = micro[i].batch % m == phase;
      continue;
    }
    const auto after = std::lower_bound(closing.begin(), closing.end(), i);
    const size_t near = after == closing.end() ? closing.back() : *after;
    const size_t distance = near > i ? near - i : i - near;
    closes[i] = distance % static_cast<size_t>(m) == 0;
  }
  out.boundaries.clear();
  const bool begins = phase >= 0 ? micro[0].batch % m == (phase + 1) % m
                                 : (closing.front() + 1) % static_cast<size_t>(m) == 0;
  if (begins) out.boundaries.push_back(micro[0].begin_ns);
  for (size_t i = 0; i + 1 < n; ++i) {
    if (closes[i]) out.boundaries.push_back(micro[i + 1].begin_ns);
  }
  return out;
}

}  // namespace idlescope::model
