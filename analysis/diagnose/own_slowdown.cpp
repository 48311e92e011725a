#include "analysis/diagnose/own_slowdown.h"

#include <algorithm>

#include "analysis/model/steady_part.h"

namespace idlescope::diagnose {
namespace {

constexpr size_t kFewest = 5;        // steps on either side
constexpr size_t kNearby = 12;       // plain steps taken on each side of a window
constexpr double kEven = 0.35;       // middle half of the durations, of the median
constexpr double kOtherKind = 0.85;  // recording makes no step faster: other steps, then

struct Middle {
  double median = 0;
  bool even = false;
};

Middle middle_of(std::vector<int64_t> durations) {
  Middle out;
  if (durations.size() < kFewest) return out;
  std::sort(durations.begin(), durations.end());
  const size_t n = durations.size();
  out.median = static_cast<double>(durations[n / 2]);
  const auto half = static_cast<double>(durations[3 * n / 4] - durations[n / 4]);
  out.even = out.median > 0 && half <= kEven * out.median;
  return out;
}

}  // namespace

double own_slowdown(const read::Process& process, const std::vector<StepPoint>& points,
                    Ns steady_from) {
  double recorded = 0, plain = 0;
  const auto ends_by = [&](Ns at) {  // the first point that ends later
    return std::partition_point(points.begin(), points.end(), [&](const StepPoint& point) {
      return point.begin_ns + point.duration_ns <= at;
    });
  };
  const auto begins_at = [&](Ns at) {
    return std::partition_point(points.begin(), points.end(),
                                [&](const StepPoint& point) { return point.begin_ns < at; });
  };
  const auto counts = [&](const StepPoint& point) {
    return point.steady && point.begin_ns >= steady_from;
  };
  const auto touches_window = [&](const StepPoint& point) {
    return std::any_of(process.windows.begin(), process.windows.end(),
                       [&](const read::Window& window) {
                         return point.begin_ns < window.detach_end_ns() &&
                                window.attach_begin_ns() < point.begin_ns + point.duration_ns;
                       });
  };
  for (const read::Window& window : process.windows) {
    std::vector<int64_t> inside, beside;
    for (auto it = begins_at(window.begin_ns); it != points.end() && it->begin_ns < window.end_ns;
         ++it) {
      const bool whole = it->begin_ns + it->duration_ns <= window.end_ns;
      if (whole && counts(*it)) inside.push_back(it->duration_ns);
    }
    size_t taken = 0;
    for (auto it = ends_by(window.attach_begin_ns()); it != points.begin() && taken < kNearby;) {
      --it;
      if (touches_window(*it)) break;  // another window
      if (!counts(*it)) continue;
      beside.push_back(it->duration_ns);
      ++taken;
    }
    taken = 0;
    for (auto it = begins_at(window.detach_end_ns()); it != points.end() && taken < kNearby; ++it) {
      if (touches_window(*it)) break;
      if (!counts(*it)) continue;
      beside.push_back(it->duration_ns);
      ++taken;
    }
    const auto n = static_cast<double>(inside.size());
    const Middle in_window = middle_of(std::move(inside));
    const Middle outside = middle_of(std::move(beside));
    if (!in_window.even || !outside.even) continue;
    recorded += n * in_window.median;
    plain += n * outside.median;
  }
  if (plain <= 0 || recorded < kOtherKind * plain) return 0;
  return std::max(1.0, recorded / plain);
}

}  // namespace idlescope::diagnose
