#include "analysis/model/op_anchors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "analysis/model/launch_order.h"
#include "analysis/model/rhythm_anchors.h"
#include "analysis/model/steady_part.h"
#include "analysis/model/step_shapes.h"

namespace idlescope::model {
namespace {

constexpr double kBreak = 0.25;    // of the typical large distance
constexpr double kEnough = 0.6;    // confidence below gives no steps
constexpr double kCoverage = 0.7;  // of the sequence, for count mode
constexpr size_t kMinimumSteps = 3;

struct Anchor {
  const char* name = "none";
  std::vector<size_t> starts;  // indices into the launch order
  double mad = 1;              // of the spacing, relative to its median
  double coverage = 0;         // of the sequence
  size_t count() const { return starts.size(); }
};

void measure(Anchor& anchor, size_t length) {
  if (anchor.starts.size() < 2 || length == 0) return;
  std::vector<int64_t> spacing;
  for (size_t i = 1; i < anchor.starts.size(); ++i) {
    spacing.push_back(static_cast<int64_t>(anchor.starts[i] - anchor.starts[i - 1]));
  }
  const int64_t middle = median(spacing);
  std::vector<int64_t> off;
  for (const int64_t s : spacing) off.push_back(std::abs(s - middle));
  anchor.mad = middle > 0 ? static_cast<double>(median(off)) / static_cast<double>(middle) : 1;
  const double span = static_cast<double>(anchor.starts.back() - anchor.starts.front() +
                                          static_cast<size_t>(std::max<int64_t>(middle, 0)));
  anchor.coverage = std::min(1.0, span / static_cast<double>(length));
}

// The largest distance between two clusters of one step each. Where few distances are much
// larger than many others that are no neighbours, something lies between those steps
// (evaluation, another phase).
size_t largest_of_steps(std::vector<size_t> distances) {
  constexpr size_t kNeighbours = 8;
  std::sort(distances.begin(), distances.end());
  size_t largest = distances.back();
  while (true) {
    const auto edge = std::partition_point(distances.begin(), distances.end(), [&](size_t d) {
      return static_cast<double>(d) <= kBreak * static_cast<double>(largest);
    });
    if (edge == distances.begin() || *(edge - 1) <= kNeighbours) return largest;
    const size_t below = *(edge - 1);
    const auto next = std::partition_point(distances.begin(), edge, [&](size_t d) {
      return static_cast<double>(d) <= kBreak * static_cast<double>(below);
    });
    if (edge - next <= distances.end() - edge) return largest;
    largest = below;
    distances.erase(edge, distances.end());
  }
}

// First positions of clusters: a cluster ends where the next occurrence is far.
std::vector<size_t> cluster(const std::vector<size_t>& positions, bool phases = false) {
  if (positions.size() < 2) return positions;
  std::vector<size_t> distances;
  for (size_t i = 1; i < positions.size(); ++i)
    distances.push_back(positions[i] - positions[i - 1]);
  const size_t largest =
      phases ? largest_of_steps(distances) : *std::max_element(distances.begin(), distances.end());
  std::vector<int64_t> large;
  for (const size_t d : distances) {
    if (d <= largest && static_cast<double>(d) > kBreak * static_cast<double>(largest)) {
      large.push_back(static_cast<int64_t>(d));
    }
  }
  const double limit = kBreak * static_cast<double>(median(large));
  std::vector<size_t> starts{positions.front()};
  for (size_t i = 1; i < positions.size(); ++i) {
    if (static_cast<double>(distances[i - 1]) > limit) starts.push_back(positions[i]);
  }
  return starts;
}

Anchor optimizer_anchor(const std::vector<Launched>& order) {
  Anchor anchor;
  anchor.name = "optimizer";
  std::vector<size_t> positions;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i].optimizer) positions.push_back(i);
  }
  anchor.starts = cluster(positions, true);
  measure(anchor, order.size());
  return anchor;
}

// Forward on one thread, backward on another: the runs of the second-busiest thread, or of
// the busiest where more than two launch.
Anchor thread_anchor(const std::vector<Launched>& order) {
  Anchor anchor;
  anchor.name = "threads";
  std::map<uint32_t, size_t> ops;
  for (const Launched& launched : order) ++ops[launched.thread];
  std::vector<std::pair<size_t, uint32_t>> busy;
  for (const auto& [thread, n] : ops) {
    if (thread != 0 && n * 100 >= order.size()) busy.push_back({n, thread});
  }
  if (busy.size() < 2) return anchor;
  std::sort(busy.rbegin(), busy.rend());
  const uint32_t thread = busy.size() > 2 ? busy[0].second : busy[1].second;
  std::vector<size_t> positions;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i].thread == thread) positions.push_back(i);
  }
  // A run ends where another thread launches more than a few ops.
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i == 0 || positions[i] - positions[i - 1] > 3) anchor.starts.push_back(positions[i]);
  }
  measure(anchor, order.size());
  return anchor;
}

// Graphs that most of the work is in: each replay is a step or a fixed part of one.
Anchor graph_anchor(const std::vector<Launched>& order) {
  Anchor anchor;
  anchor.name = "graph";
  std::unordered_map<uint32_t, uint64_t> ops;
  uint64_t all = 0;
  for (const Launched& launched : order) {
    all += launched.ops;
    if (launched.graph) ops[launched.token] += launched.ops;
  }
  uint64_t in_graphs = 0;
  uint64_t most = 0;
  for (const auto& [token, n] : ops) {
    in_graphs += n;
    most = std::max(most, n);
  }
  // A step captured again for each shape is many graphs of about the same size.
  const bool one = 2 * most >= all;
  if (!one && 2 * in_graphs < all) return anchor;
  // Recorded as a whole, a graph shows its length and not its nodes.
  const bool whole = std::all_of(order.begin(), order.end(), [](const Launched& launched) {
    return !launched.graph || launched.ops == 1;
  });
  const auto size = [&](const Launched& launched) {
    return whole ? launched.device_ns : static_cast<int64_t>(launched.ops);
  };
  std::vector<int64_t> sizes;
  for (const Launched& launched : order) {
    if (launched.graph) sizes.push_back(size(launched));
  }
  const int64_t typical = median(sizes);
  const auto like = [&](int64_t n) { return 4 * n >= 3 * typical && 3 * n <= 4 * typical; };
  // Graphs of all sizes are pieces of steps.
  const auto alike = static_cast<size_t>(std::count_if(sizes.begin(), sizes.end(), like));
  if (!one && 5 * alike < 4 * sizes.size()) return anchor;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!order[i].graph) continue;
    if (one ? ops[order[i].token] == most : like(size(order[i]))) anchor.starts.push_back(i);
  }
  measure(anchor, order.size());
  // How much of the work the replays cover, not how many of the launches: eager steps before
  // the first replay launch hundreds of kernels each, a replay is one.
  uint64_t covered = 0;
  for (size_t i = anchor.starts.empty() ? order.size() : anchor.starts.front(); i < order.size();
       ++i) {
    covered += order[i].ops;
  }
  if (all > 0) {
    anchor.coverage =
        std::max(anchor.coverage, static_cast<double>(covered) / static_cast<double>(all));
  }
  return anchor;
}

// Every token votes for the number of its clusters by how evenly they lie.
Anchor count_anchor(const std::vector<Launched>& order) {
  Anchor best;
  best.name = "count";
  uint32_t tokens = 0;
  for (const Launched& launched : order) tokens = std::max(tokens, launched.token + 1);
  std::vector<std::vector<size_t>> positions(tokens);
  for (size_t i = 0; i < order.size(); ++i) positions[order[i].token].push_back(i);
  std::vector<Anchor> candidates;
  std::map<size_t, double> votes;
  for (const std::vector<size_t>& at : positions) {
    if (at.size() < kMinimumSteps) continue;
    Anchor anchor;
    anchor.starts = cluster(at);
    measure(anchor, order.size());
    if (anchor.count() < kMinimumSteps || anchor.coverage < kCoverage) continue;
    const double vote = std::max(0.0, 1 - 4 * anchor.mad) * anchor.coverage * anchor.coverage;
    if (vote <= 0) continue;
    votes[anchor.count()] += vote;
    candidates.push_back(std::move(anchor));
  }
  double most = 0;
  size_t winner = 0;
  for (const auto& [n, vote] : votes) {
    double pooled = vote;
    if (const auto it = votes.find(n - 1); it != votes.end()) pooled += it->second;
    if (const auto it = votes.find(n + 1); it != votes.end()) pooled += it->second;
    if (pooled > most) {
      most = pooled;
      winner = n;
    }
  }
  for (Anchor& candidate : candidates) {
    if (candidate.count() != winner) continue;
    if (best.starts.empty() || candidate.mad < best.mad) {
      candidate.name = "count";
      best = std::move(candidate);
    }
  }
  return best;
}

// Share of launches that are what was launched one period before: 1 for a loop that does the
// same each step. A period inside a step (a layer) fails at the edges of every step.
// Short periods say nothing: one kernel in a row repeats too.
double repeats(const std::vector<Launched>& order, const Anchor& anchor) {
  constexpr size_t kShortestStep = 8;
  std::vector<int64_t> spacing;
  for (size_t i = 1; i < anchor.starts.size(); ++i) {
    spacing.push_back(static_cast<int64_t>(anchor.starts[i] - anchor.starts[i - 1]));
  }
  const auto period = static_cast<size_t>(std::max<int64_t>(0, median(std::move(spacing))));
  if (period < kShortestStep || period >= order.size()) return 0;
  size_t same = 0;
  for (size_t i = period; i < order.size(); ++i) {
    if (order[i].token == order[i - period].token) ++same;
  }
  return static_cast<double>(same) / static_cast<double>(order.size() - period);
}

Anchor collective_anchor(const std::vector<Launched>& order, bool* pronounced) {
  Anchor anchor;
  anchor.name = "collectives";
  Rhythm rhythm = collective_rhythm(order);
  anchor.starts = std::move(rhythm.starts);
  *pronounced = rhythm.pronounced;
  measure(anchor, order.size());
  return anchor;
}

// Most of the work is in graphs, so that there are few tokens to count.
bool opaque(const std::vector<Launched>& order) {
  uint64_t in_graphs = 0;
  uint64_t all = 0;
  for (const Launched& launched : order) {
    all += launched.ops;
    if (launched.graph) in_graphs += launched.ops;
  }
  return 2 * in_graphs >= all;
}

bool same_count(size_t a, size_t b) { return a >= 2 && b >= 2 && (a > b ? a - b : b - a) <= 1; }

bool integer_ratio(size_t a, size_t b) {
  if (a < 2 || b < 2) return false;
  const double ratio = static_cast<double>(std::max(a, b)) / static_cast<double>(std::min(a, b));
  return ratio <= 16 && std::abs(ratio - std::round(ratio)) < 0.03 * ratio;
}

double confidence_of(const Anchor& anchor, double agree) {
  return std::clamp(std::min({1 - 2 * anchor.mad, anchor.coverage, agree}), 0.0, 1.0);
}

}  // namespace

StepTrack find_op_track(const read::Recording& recording, const read::Process& process,
                        const DeviceTimeline& device) {
  StepTrack track;
  // Where the host ran far ahead, many launches lie before the window: then the device's
  // own order says more than the host's.
  const auto launched =
      static_cast<size_t>(std::count_if(device.ops.begin(), device.ops.end(),
                                        [&](uint32_t i) { return process.ops[i].call != kNone; }));
  track.on_device = 10 * launched < 9 * device.ops.size();
  const std::vector<Launched> order = launch_order(recording, process, device, track.on_device);
  const Anchor optimizer = optimizer_anchor(order);
  const Anchor threads = thread_anchor(order);
  const Anchor count = count_anchor(order);
  const Anchor graph = graph_anchor(order);
  bool pronounced = false;
  const Anchor collectives = collective_anchor(order, &pronounced);
  const Anchor* chosen = nullptr;
  double confidence = 0;
  const auto consider = [&](const Anchor& anchor, std::initializer_list<const Anchor*> others,
                            double alone) {
    if (anchor.count() < kMinimumSteps) return;
    double agree = alone;
    for (const Anchor* other : others) {
      if (other->count() < 2) continue;
      if (same_count(anchor.count(), other->count())) {
        agree = 1;
        break;
      }
      // A ratio may be gradient accumulation; of count mode and collectives it may be layers.
      if (other != &count && other != &collectives && integer_ratio(anchor.count(), other->count()))
        agree = std::max(agree, 0.9);
    }
    const double value = confidence_of(anchor, agree);
    if (chosen == nullptr || value > confidence) {
      chosen = &anchor;
      confidence = value;
    }
  };
  consider(optimizer, {&threads, &count, &collectives}, optimizer.count() >= 4 ? 0.7 : 0.5);
  if (confidence < kEnough) consider(threads, {&optimizer, &count, &collectives}, 0.7);
  if (confidence < kEnough) consider(graph, {&optimizer, &threads}, 0.7);
  if (confidence < kEnough) {
    // A second anchor of its own: nearly every launch repeats, many times over. A profile of
    // one pass repeats its layers just so; a window of a running loop does not end with one.
    const bool looped = recording.origin == read::Origin::kIdlescope && count.count() >= 50 &&
                        repeats(order, count) >= 0.998;
    consider(count, {&optimizer, &threads, &collectives}, looped ? 0.7 : 0.5);
  }
  if (confidence < kEnough) consider(collectives, {&optimizer, &threads}, pronounced ? 0.7 : 0.5);
  if (confidence < kEnough && opaque(order)) {
    const Rhythm rhythm = busy_rhythm(process, device);
    if (!rhythm.starts.empty()) {
      track.anchor = "rhythm";
      track.on_device = true;
      track.confidence = std::min(0.7, rhythm.strength);
      if (track.confidence < kEnough) return track;
      for (const size_t start : rhythm.starts) {
        const Ns at = process.ops[device.ops[start]].begin_ns;
        if (track.boundaries.empty() || at > track.boundaries.back())
          track.boundaries.push_back(at);
      }
      return track;
    }
  }
  track.confidence = confidence;
  if (chosen == nullptr) return track;
  track.anchor = chosen->name;
  if (confidence < kEnough) return track;
  const std::vector<size_t> starts = merge_rounds(order, chosen->starts);
  for (const size_t start : starts) {
    const Ns at = order[start].launch_ns;
    if (track.boundaries.empty() || at > track.boundaries.back()) track.boundaries.push_back(at);
  }
  for (const EvaluationRun& run : find_evaluation(order, starts)) {
    track.evaluation.push_back({order[run.first].launch_ns, order[run.last - 1].launch_ns + 1});
    track.evaluation_batches += run.batches;
  }
  if (&threads != chosen && integer_ratio(threads.count(), starts.size()) &&
      threads.count() > starts.size() + 1) {
    track.micro_steps = static_cast<uint32_t>(
        std::lround(static_cast<double>(threads.count()) / static_cast<double>(starts.size())));
  }
  return track;
}

}  // namespace idlescope::model
