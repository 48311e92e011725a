#include "analysis/diagnose/shares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace idlescope::diagnose {
namespace {

constexpr size_t kMaxBlocks = 200;
constexpr size_t kMinSteps = 10;
constexpr size_t kMinBlock = 5;
constexpr int kDraws = 200;
constexpr size_t kVerdicts = report::Verdict_ARRAYSIZE;

size_t block_size(size_t steps) {
  const size_t least = steps >= 10 * kMinBlock ? kMinBlock : 1;
  return std::max(least, (steps + kMaxBlocks - 1) / kMaxBlocks);
}

Interval percentiles(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at(0.025), at(0.975), 0.95};
}

bool counts(report::Leaf leaf) { return leaf != report::PROFILER && leaf != report::NOTEBOOK_IDLE; }

// Draws block indices with replacement.
template <typename Use>
void bootstrap(size_t blocks, Use&& use) {
  std::mt19937 random(20240607);
  std::uniform_int_distribution<size_t> pick(0, blocks - 1);
  std::vector<size_t> drawn(blocks);
  for (int i = 0; i < kDraws; ++i) {
    for (size_t& b : drawn) b = pick(random);
    use(drawn);
  }
}

}  // namespace

Interval mean_interval(const std::vector<int64_t>& values) {
  if (values.size() < kMinSteps) return {};
  const size_t size = block_size(values.size());
  struct Block {
    double sum = 0;
    double n = 0;
  };
  std::vector<Block> blocks((values.size() + size - 1) / size);
  for (size_t i = 0; i < values.size(); ++i) {
    blocks[i / size].sum += static_cast<double>(values[i]);
    blocks[i / size].n += 1;
  }
  std::vector<double> means;
  bootstrap(blocks.size(), [&](const std::vector<size_t>& drawn) {
    double sum = 0;
    double n = 0;
    for (const size_t b : drawn) {
      sum += blocks[b].sum;
      n += blocks[b].n;
    }
    means.push_back(sum / n);
  });
  return percentiles(means);
}

Shares compute_shares(const Ledger& ledger, size_t steps) {
  Shares shares;
  shares.base_ns =
      ledger.total_ns() - ledger.leaf_ns(report::PROFILER) - ledger.leaf_ns(report::NOTEBOOK_IDLE);
  const double base = std::max<double>(1, static_cast<double>(shares.base_ns));
  std::array<Ns, kVerdicts> by_verdict{};
  for (const report::Leaf leaf : kLeaves) {
    const Ns total = ledger.leaf_ns(leaf);
    if (is_unknown(leaf)) shares.unknown_ns += static_cast<double>(total);
    if (total == 0) continue;
    LeafTime time;
    time.leaf = leaf;
    time.total_ns = total;
    time.share = counts(leaf) ? static_cast<double>(total) / base : 0;
    if (steps > 0) time.per_step_ns = static_cast<double>(total) / static_cast<double>(steps);
    for (const Grade grade : {Grade::kA, Grade::kB, Grade::kC}) {
      time.grade_ns[static_cast<size_t>(grade)] = ledger.grade_ns(leaf, grade);
    }
    time.pieces = ledger.pieces(leaf);
    shares.leaves.push_back(time);
    if (counts(leaf)) by_verdict[verdict_of(leaf)] += total;
  }
  for (size_t v = 1; v < kVerdicts; ++v) {
    if (by_verdict[v] == 0) continue;
    VerdictShare share;
    share.verdict = static_cast<report::Verdict>(v);
    share.share = static_cast<double>(by_verdict[v]) / base;
    if (steps > 0) {
      share.per_step_ns = static_cast<double>(by_verdict[v]) / static_cast<double>(steps);
    }
    shares.verdicts.push_back(share);
  }
  std::sort(shares.verdicts.begin(), shares.verdicts.end(), [](const auto& a, const auto& b) {
    return a.share != b.share ? a.share > b.share : a.verdict < b.verdict;
  });
  if (steps < kMinSteps) return shares;

  // Block sums per leaf, then per draw: shares of leaves and verdicts.
  const size_t size = block_size(ledger.spans());
  const size_t blocks = (ledger.spans() + size - 1) / size;
  std::vector<std::array<double, kLeafCount>> sums(blocks);
  for (auto& block : sums) block.fill(0);
  for (size_t i = 0; i < ledger.spans(); ++i) {
    for (size_t l = 0; l < kLeafCount; ++l) {
      sums[i / size][l] += static_cast<double>(ledger.row(i)[l]);
    }
  }
  std::vector<std::vector<double>> leaf_draws(shares.leaves.size());
  std::vector<std::vector<double>> verdict_draws(shares.verdicts.size());
  report::Verdict top = report::VERDICT_UNSPECIFIED;
  for (const VerdictShare& share : shares.verdicts) {
    if (share.verdict == report::COMPUTE) continue;
    top = share.verdict;
    break;
  }
  int top_wins = 0;
  bootstrap(blocks, [&](const std::vector<size_t>& drawn) {
    std::array<double, kLeafCount> total{};
    for (const size_t b : drawn) {
      for (size_t l = 0; l < kLeafCount; ++l) total[l] += sums[b][l];
    }
    double whole = 0;
    std::array<double, kVerdicts> verdict{};
    for (size_t l = 0; l < kLeafCount; ++l) {
      if (!counts(kLeaves[l])) continue;
      whole += total[l];
      verdict[verdict_of(kLeaves[l])] += total[l];
    }
    whole = std::max(whole, 1.0);
    for (size_t i = 0; i < shares.leaves.size(); ++i) {
      leaf_draws[i].push_back(total[leaf_index(shares.leaves[i].leaf)] / whole);
    }
    for (size_t i = 0; i < shares.verdicts.size(); ++i) {
      verdict_draws[i].push_back(verdict[shares.verdicts[i].verdict] / whole);
    }
    report::Verdict best = report::VERDICT_UNSPECIFIED;
    for (size_t v = 1; v < kVerdicts; ++v) {
      if (v == report::COMPUTE) continue;
      if (best == report::VERDICT_UNSPECIFIED || verdict[v] > verdict[best]) {
        best = static_cast<report::Verdict>(v);
      }
    }
    if (best == top) ++top_wins;
  });
  for (size_t i = 0; i < shares.leaves.size(); ++i) {
    shares.leaves[i].ci = percentiles(leaf_draws[i]);
  }
  for (size_t i = 0; i < shares.verdicts.size(); ++i) {
    shares.verdicts[i].ci = percentiles(verdict_draws[i]);
  }
  shares.top_probability = static_cast<double>(top_wins) / kDraws;
  return shares;
}

}  // namespace idlescope::diagnose
