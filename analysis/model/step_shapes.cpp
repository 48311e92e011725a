#include "analysis/model/step_shapes.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analysis/model/steady_part.h"

namespace idlescope::model {
namespace {

constexpr double kAlike = 0.8;        // weighted Jaccard of steps of one kind (C4)
constexpr double kWholeStep = 0.75;   // more of a step than a forward pass is
constexpr double kKnownTokens = 0.7;  // of an evaluation: what training launches, too
constexpr double kSamePass = 0.9;
constexpr double kRepeats = 0.97;
constexpr size_t kLongestPass = 4096;
constexpr size_t kMinimumSteps = 5;
constexpr double kLooseness = 0.03;  // of a step: noise that two places may differ by

using Counts = std::unordered_map<uint32_t, int64_t>;

Counts count(const std::vector<Launched>& order, size_t first, size_t last) {
  Counts counts;
  for (size_t i = first; i < last; ++i) ++counts[order[i].token];
  return counts;
}

double jaccard(const Counts& a, const Counts& b) {
  int64_t both = 0;
  int64_t any = 0;
  for (const auto& [token, n] : a) {
    const auto it = b.find(token);
    const int64_t m = it == b.end() ? 0 : it->second;
    both += std::min(n, m);
    any += std::max(n, m);
  }
  for (const auto& [token, n] : b) any += a.contains(token) ? 0 : n;
  return any == 0 ? 1 : static_cast<double>(both) / static_cast<double>(any);
}

// The ordinary step: of those of about the median length the one that the others are most like.
// A few are enough to be compared.
size_t ordinary_step(const std::vector<Launched>& order, const std::vector<size_t>& starts) {
  std::vector<int64_t> lengths;
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    lengths.push_back(static_cast<int64_t>(starts[s + 1] - starts[s]));
  }
  const double middle = static_cast<double>(median(lengths));
  std::vector<size_t> some;
  for (size_t s = 0; s < lengths.size() && some.size() < 9; ++s) {
    if (std::abs(static_cast<double>(lengths[s]) - middle) <= 0.15 * middle) some.push_back(s);
  }
  size_t best = SIZE_MAX;
  double most = -1;
  for (const size_t s : some) {
    const Counts mine = count(order, starts[s], starts[s + 1]);
    double sum = 0;
    for (const size_t other : some) {
      sum += jaccard(mine, count(order, starts[other], starts[other + 1]));
    }
    if (sum > most) {
      most = sum;
      best = s;
    }
  }
  // Steps that are not alike at all have no ordinary one.
  if (best == SIZE_MAX || most < kAlike * static_cast<double>(some.size())) return SIZE_MAX;
  return best;
}

// The place of `extra` launches in [first, last) without which the rest is most like an
// ordinary step; the earliest of equals: the pass before the backward one belongs to it.
size_t place_of_extra(const std::vector<Launched>& order, size_t first, size_t last, size_t extra,
                      const Counts& ordinary, double* mismatch) {
  Counts off;  // what is left outside of the place, less an ordinary step
  for (const auto& [token, n] : ordinary) off[token] = -n;
  for (size_t i = first + extra; i < last; ++i) ++off[order[i].token];
  int64_t cost = 0;
  for (const auto& [token, n] : off) cost += std::abs(n);
  const auto change = [&](uint32_t token, int64_t by) {
    int64_t& n = off[token];
    cost += std::abs(n + by) - std::abs(n);
    n += by;
  };
  // Evaluation updates nothing, so that a place with an update in it is out of question.
  const auto updates = [&](size_t i) { return order[i].optimizer ? 1 : 0; };
  int inside = 0;
  for (size_t i = first; i < first + extra; ++i) inside += updates(i);
  const auto price = [&] { return inside > 0 ? cost + static_cast<int64_t>(last) : cost; };
  std::vector<int64_t> costs{price()};
  for (size_t at = first; at + extra < last; ++at) {
    change(order[at].token, 1);
    change(order[at + extra].token, -1);
    inside += updates(at + extra) - updates(at);
    costs.push_back(price());
  }
  const int64_t least = *std::min_element(costs.begin(), costs.end());
  const double length = static_cast<double>(last - first - extra);
  const auto loose = static_cast<int64_t>(kLooseness * length);
  size_t near = 0;
  while (costs[near] > least + loose) ++near;
  // Near the first good place, the best one. By index: of iterators g++ 12 says at -O3 that they
  // are used after the vector is gone.
  const size_t end = std::min(costs.size(), near + static_cast<size_t>(loose) + 1);
  size_t best = near;
  for (size_t i = near; i < end; ++i) {
    if (costs[i] < costs[best]) best = i;
  }
  *mismatch = static_cast<double>(least) / std::max(1.0, length);
  return first + best;
}

// Launches of one pass over the forward part: the longest stretch before `boundary`, where
// evaluation ends and training goes on, that comes again behind it; 0: none.
size_t length_of_pass(const std::vector<Launched>& order, size_t first, size_t boundary,
                      size_t last) {
  for (size_t n = std::min({boundary - first, last - boundary, kLongestPass}); n >= 2; --n) {
    size_t same = 0;
    for (size_t i = boundary - n; i < boundary; ++i) {
      same += order[i].token == order[i + n].token ? 1 : 0;
    }
    if (static_cast<double>(same) >= kSamePass * static_cast<double>(n)) return n;
  }
  return 0;
}

// The lag of about `pass` at which evaluation is like itself, if it is nearly so; 0: none.
size_t lag_of_passes(const std::vector<Launched>& order, size_t first, size_t last, size_t pass) {
  size_t best = 0;
  double most = kRepeats;
  // Evaluation copies or measures something more, or training does.
  for (size_t lag = pass + pass / 5; lag > 1 && 5 * lag >= 4 * pass; --lag) {
    if (last - first < 2 * lag) continue;
    size_t same = 0;
    for (size_t i = first + lag; i < last; ++i) {
      same += order[i].token == order[i - lag].token ? 1 : 0;
    }
    const double share = static_cast<double>(same) / static_cast<double>(last - first - lag);
    if (share <= most) continue;
    most = share;
    best = lag;
  }
  return best;
}

// How many passes over the forward part `extra` is; 0: it is none.
uint64_t forward_passes(const std::vector<Launched>& order, size_t first, size_t last,
                        const Counts& ordinary) {
  int64_t step = 0;     // launches of an ordinary step …
  int64_t covered = 0;  // … of tokens that `extra` has, too
  int64_t known = 0;
  const Counts extra = count(order, first, last);
  std::vector<int64_t> ratios;
  for (size_t i = first; i < last; ++i) {
    if (order[i].optimizer) return 0;
  }
  for (const auto& [token, n] : ordinary) step += n;
  for (const auto& [token, n] : extra) {
    const auto it = ordinary.find(token);
    if (it == ordinary.end()) continue;
    known += n;
    covered += it->second;
    for (int64_t i = 0; i < it->second; ++i) ratios.push_back(1000 * n / it->second);
  }
  if (static_cast<double>(known) < kKnownTokens * static_cast<double>(last - first)) return 0;
  if (static_cast<double>(covered) > kWholeStep * static_cast<double>(step)) return 0;
  const int64_t passes = (median(std::move(ratios)) + 500) / 1000;
  return static_cast<uint64_t>(std::max<int64_t>(passes, 0));
}

constexpr size_t kLongestRound = 4;
constexpr size_t kCompared = 64;  // steps; more say the same

}  // namespace

std::vector<size_t> merge_rounds(const std::vector<Launched>& order,
                                 const std::vector<size_t>& starts) {
  if (starts.size() < 2 * kMinimumSteps) return starts;
  std::vector<Counts> shapes;
  for (size_t s = 0; s + 1 < starts.size() && s < kCompared; ++s) {
    shapes.push_back(count(order, starts[s], starts[s + 1]));
  }
  const auto alike = [&](size_t lag) {
    size_t n = 0;
    for (size_t i = lag; i < shapes.size(); ++i) {
      n += jaccard(shapes[i], shapes[i - lag]) >= kAlike ? 1 : 0;
    }
    return static_cast<double>(n) / static_cast<double>(shapes.size() - lag);
  };
  if (alike(1) > 1 - kAlike) return starts;
  for (size_t round = 2; round <= kLongestRound; ++round) {
    if (shapes.size() < round * kMinimumSteps || alike(round) < kAlike) continue;
    std::vector<size_t> out;
    for (size_t s = 0; s < starts.size(); s += round) out.push_back(starts[s]);
    return out;
  }
  return starts;
}

std::vector<EvaluationRun> find_evaluation(const std::vector<Launched>& order,
                                           const std::vector<size_t>& starts) {
  std::vector<EvaluationRun> out;
  if (starts.size() < kMinimumSteps + 1) return out;
  const size_t typical = ordinary_step(order, starts);
  if (typical == SIZE_MAX) return out;
  const size_t length = starts[typical + 1] - starts[typical];
  const Counts ordinary = count(order, starts[typical], starts[typical + 1]);
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    const size_t n = starts[s + 1] - starts[s];
    if (n <= length || static_cast<double>(length) > kAlike * static_cast<double>(n)) continue;
    double mismatch = 0;
    const size_t extra = n - length;
    const size_t at = place_of_extra(order, starts[s], starts[s + 1], extra, ordinary, &mismatch);
    if (mismatch > 2 * (1 - kAlike)) continue;
    uint64_t batches = forward_passes(order, at, at + extra, ordinary);
    if (batches == 0) continue;
    // Where forward and backward launch the same kernels their numbers say too little.
    const size_t pass = length_of_pass(order, at, at + extra, starts[s + 1]);
    const size_t lag = lag_of_passes(order, at, at + extra, pass);
    if (lag > 0) batches = std::max<uint64_t>(batches, (extra + lag / 2) / lag);
    out.push_back({at, at + extra, batches});
  }
  return out;
}

}  // namespace idlescope::model
