#include "analysis/diagnose/own_slowdown.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "analysis/model/steady_part.h"

namespace idlescope::diagnose {
namespace {

using read::Ns;

constexpr size_t kEnoughSteps = 5;

// What is far from an ordinary step and seldom: a checkpoint, an evaluation. Steps that are
// long and short by turns (a loader's bursts) are no such thing.
Ns stall_limit(const std::vector<int64_t>& steps) {
  const Ns typical = model::median(steps);
  std::vector<int64_t> off;
  for (const int64_t d : steps) off.push_back(std::abs(d - typical));
  return typical + std::max<Ns>(typical, 10 * model::median(std::move(off)));
}

size_t rare_stalls(const std::vector<int64_t>& steps) {
  if (steps.size() < 5) return 0;
  const Ns limit = stall_limit(steps);
  const auto n = static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [&](int64_t d) { return d > limit; }));
  return 5 * n <= steps.size() ? n : 0;
}

double without_stalls(const std::vector<int64_t>& steps) {
  const Ns limit = rare_stalls(steps) > 0 ? stall_limit(steps) : INT64_MAX;
  double sum = 0;
  size_t n = 0;
  for (const int64_t d : steps) {
    if (d > limit) continue;
    sum += static_cast<double>(d);
    ++n;
  }
  return n == 0 ? 0 : sum / static_cast<double>(n);
}

// The steps outside that are next to the windows, as many as inside: a job changes with time.
std::vector<int64_t> nearest(const std::vector<int64_t>& outside, const std::vector<Ns>& begin,
                             const std::vector<read::Window>& windows, size_t n) {
  std::vector<std::pair<Ns, int64_t>> by_distance;
  for (size_t i = 0; i < outside.size(); ++i) {
    Ns distance = INT64_MAX;
    for (const read::Window& window : windows) {
      const Ns away = begin[i] < window.begin_ns ? window.begin_ns - begin[i]
                                                 : std::abs(begin[i] - window.end_ns);
      distance = std::min(distance, away);
    }
    by_distance.push_back({distance, outside[i]});
  }
  std::sort(by_distance.begin(), by_distance.end());
  if (by_distance.size() > std::max<size_t>(n, 5)) by_distance.resize(std::max<size_t>(n, 5));
  std::vector<int64_t> out;
  for (const auto& [distance, duration] : by_distance) out.push_back(duration);
  return out;
}

}  // namespace

double own_slowdown(const std::vector<read::Window>& windows, const StepsBySide& steps) {
  double inside_sum = 0;
  double plain_sum = 0;
  for (const read::Window& window : windows) {
    const double n = window.end.inside_steps();
    if (n == 0 || window.end.plain_steps() == 0) continue;
    inside_sum += n * static_cast<double>(window.end.inside_step_ns());
    plain_sum += n * static_cast<double>(window.end.plain_step_ns());
  }
  if (plain_sum > 0) {
    const std::vector<int64_t> near =
        nearest(steps.outside, steps.outside_begin, windows, steps.inside.size());
    const bool stalled = rare_stalls(steps.inside) > 0 || rare_stalls(near) > 0;
    if (!stalled || steps.inside.size() < kEnoughSteps || near.size() < kEnoughSteps) {
      return inside_sum / plain_sum;
    }
    return without_stalls(steps.inside) / std::max(1.0, without_stalls(near));
  }
  if (steps.inside.size() < kEnoughSteps || steps.outside.size() < kEnoughSteps) return 0;
  return static_cast<double>(model::median(steps.inside)) /
         static_cast<double>(std::max<Ns>(1, model::median(steps.outside)));
}

}  // namespace idlescope::diagnose
