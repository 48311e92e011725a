#include "analysis/diagnose/ledger.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace idlescope::diagnose {

Ledger::Ledger(std::vector<LedgerSpan> spans) : spans_(std::move(spans)), rows_(spans_.size()) {
  for (Row& row : rows_) row.fill(0);
}

// First span that ends after the time. Pieces come nearly in order: walk from the cursor.
size_t Ledger::seek(Ns time_ns) {
  size_t i = cursor_;
  if (i >= spans_.size() || (i > 0 && spans_[i - 1].end_ns > time_ns) ||
      (i + 4 < spans_.size() && spans_[i + 4].end_ns <= time_ns)) {
    i = static_cast<size_t>(
        std::partition_point(spans_.begin(), spans_.end(),
                             [&](const LedgerSpan& span) { return span.end_ns <= time_ns; }) -
        spans_.begin());
  } else {
    while (i < spans_.size() && spans_[i].end_ns <= time_ns) ++i;
  }
  cursor_ = i;
  return i;
}

size_t Ledger::span_at(Ns time_ns) const {
  const auto it = std::partition_point(
      spans_.begin(), spans_.end(), [&](const LedgerSpan& span) { return span.end_ns <= time_ns; });
  if (it == spans_.end() || time_ns < it->begin_ns) return spans_.size();
  return static_cast<size_t>(it - spans_.begin());
}

bool Ledger::covers(Ns begin_ns, Ns end_ns) {
  const size_t i = seek(begin_ns);
  return i < spans_.size() && spans_[i].begin_ns < end_ns;
}

void Ledger::add(const Piece& piece) {
  const size_t leaf = leaf_index(piece.leaf);
  for (size_t i = seek(piece.begin_ns); i < spans_.size() && spans_[i].begin_ns < piece.end_ns;
       ++i) {
    const Ns from = std::max(piece.begin_ns, spans_[i].begin_ns);
    const Ns to = std::min(piece.end_ns, spans_[i].end_ns);
    if (to <= from) continue;
    rows_[i][leaf] += to - from;
    totals_[leaf] += to - from;
    grades_[leaf][static_cast<size_t>(piece.grade)] += to - from;
    ++pieces_[leaf];
  }
}

bool Ledger::close() {
  bool complete = true;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Ns sum = std::accumulate(rows_[i].begin(), rows_[i].end(), Ns{0});
    const Ns length = spans_[i].end_ns - spans_[i].begin_ns;
    if (sum > length) {
      throw std::logic_error("leaves of a span sum to " + std::to_string(sum) + " ns of " +
                             std::to_string(length));
    }
    if (sum == length) continue;
    complete = false;
    const size_t leaf = leaf_index(report::UNKNOWN_LOST);
    rows_[i][leaf] += length - sum;
    totals_[leaf] += length - sum;
    grades_[leaf][static_cast<size_t>(Grade::kC)] += length - sum;
    ++pieces_[leaf];
  }
  return complete;
}

Ns Ledger::total_ns() const { return std::accumulate(totals_.begin(), totals_.end(), Ns{0}); }

void Ledger::move(size_t span, report::Leaf from, report::Leaf to, Ns ns, Grade grade) {
  const size_t a = leaf_index(from);
  const size_t b = leaf_index(to);
  const Ns moved = std::min(ns, rows_[span][a]);
  if (moved <= 0) return;
  rows_[span][a] -= moved;
  rows_[span][b] += moved;
  totals_[a] -= moved;
  totals_[b] += moved;
  Ns left = moved;
  for (size_t g = 0; g < 3 && left > 0; ++g) {
    const Ns taken = std::min(left, grades_[a][g]);
    grades_[a][g] -= taken;
    left -= taken;
  }
  grades_[b][static_cast<size_t>(grade)] += moved;
  ++pieces_[b];
}

}  // namespace idlescope::diagnose
