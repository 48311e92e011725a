#include "analysis/model/steady_part.h"

#include <algorithm>
#include <cmath>

namespace idlescope::model {
namespace {

constexpr size_t kMinimumSegment = 10;
constexpr double kLevelChange = 0.10;
// A verdict wants this many steps: levels this close are better kept together than too short.
constexpr size_t kWorthKeeping = 20;
constexpr double kNearLevel = 0.30;

double median_of(const std::vector<int64_t>& values, size_t first, size_t last) {
  std::vector<int64_t> part(values.begin() + static_cast<ptrdiff_t>(first),
                            values.begin() + static_cast<ptrdiff_t>(last));
  return static_cast<double>(median(std::move(part)));
}

// Best split of [first, last) by CUSUM of sign(duration - median): robust against single
// long steps. Returns last where no split passes the test.
size_t find_change(const std::vector<int64_t>& values, size_t first, size_t last) {
  const size_t n = last - first;
  if (n < 2 * kMinimumSegment) return last;
  const double centre = median_of(values, first, last);
  double sum = 0;
  double best = 0;
  size_t at = last;
  for (size_t i = first; i < last; ++i) {
    const double value = static_cast<double>(values[i]);
    sum += value > centre ? 1 : (value < centre ? -1 : 0);
    const size_t left = i + 1 - first;
    if (left < kMinimumSegment || n - left < kMinimumSegment) continue;
    if (std::abs(sum) > best) {
      best = std::abs(sum);
      at = i + 1;
    }
  }
  // Under no change the walk stays within about 1.36·sqrt(n) (Kolmogorov, 5 %); 2·sqrt(n)
  // keeps false splits rare where the test runs many times.
  if (best < 2.0 * std::sqrt(static_cast<double>(n))) return last;
  const double left = median_of(values, first, at);
  const double right = median_of(values, at, last);
  if (std::abs(left - right) < kLevelChange * std::min(left, right)) return last;
  return at;
}

void split(const std::vector<int64_t>& values, size_t first, size_t last, std::vector<Range>& out) {
  const size_t at = find_change(values, first, last);
  if (at == last) {
    out.push_back({first, last});
    return;
  }
  split(values, first, at, out);
  split(values, at, last, out);
}

}  // namespace

int64_t median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

size_t warmup_length(const std::vector<int64_t>& durations_ns) {
  const size_t n = durations_ns.size();
  if (n < 2) return 0;
  // The median of the rest moves little while we drop at most half: take it of the second
  // half once for long series, exactly for short ones.
  size_t drop = 0;
  while (drop < n / 2) {
    const size_t rest = n < 200 ? drop + 1 : n / 2;
    const double typical = median_of(durations_ns, rest, n);
    if (static_cast<double>(durations_ns[drop]) <= 1.5 * typical) break;
    ++drop;
    if (n >= 200) {
      while (drop < n / 2 && static_cast<double>(durations_ns[drop]) > 1.5 * typical) ++drop;
      break;
    }
  }
  return drop;
}

Range steady_range(const std::vector<int64_t>& durations_ns) {
  const size_t first = warmup_length(durations_ns);
  const size_t n = durations_ns.size();
  std::vector<Range> parts;
  split(durations_ns, first, n, parts);
  size_t from = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].size() >= parts[from].size()) from = i;
  }
  Range best = parts[from];
  const double level = median_of(durations_ns, best.first, best.last);
  const auto near = [&](const Range& part) {
    const double other = median_of(durations_ns, part.first, part.last);
    return std::abs(other - level) <= kNearLevel * std::min(other, level);
  };
  size_t to = from + 1;
  while (best.size() < kWorthKeeping) {
    const bool after = to < parts.size() && near(parts[to]);
    const bool before = from > 0 && near(parts[from - 1]);
    if (after) {
      best.last = parts[to++].last;
    } else if (before) {
      best.first = parts[--from].first;
    } else {
      break;
    }
  }
  return best;
}

}  // namespace idlescope::model
