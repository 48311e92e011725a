// Sums of device time by leaf, per analysed span (WINDOW ledger).
//
// In: pieces in (almost) time order. Out: per span and in total the ns of each leaf with its
// evidence grades. Pieces are clipped to the spans; what lies outside has no leaf.
//
// Invariant: the leaves of each span sum to its length exactly (check()).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/diagnose/leaves.h"
#include "analysis/diagnose/piece.h"

namespace idlescope::diagnose {

struct LedgerSpan {
  Ns begin_ns = 0;
  Ns end_ns = 0;
};

class Ledger {
 public:
  using Row = std::array<Ns, kLeafCount>;

  // Spans are disjoint and in time order.
  explicit Ledger(std::vector<LedgerSpan> spans);

  void add(const Piece& piece);
  // Whether any of [begin_ns, end_ns) is analysed.
  bool covers(Ns begin_ns, Ns end_ns);
  // Gives time that nothing was said about to UNKNOWN_LOST; true if there was none.
  // Throws std::logic_error where a span's leaves exceed its length: our own bug.
  bool close();

  size_t spans() const { return spans_.size(); }
  const LedgerSpan& span(size_t i) const { return spans_[i]; }
  // Span that holds the time; spans() if none does.
  size_t span_at(Ns time_ns) const;
  const Row& row(size_t i) const { return rows_[i]; }
  Ns total_ns() const;
  Ns leaf_ns(report::Leaf leaf) const { return totals_[leaf_index(leaf)]; }
  const Row& totals() const { return totals_; }
  Ns grade_ns(report::Leaf leaf, Grade grade) const {
    return grades_[leaf_index(leaf)][static_cast<size_t>(grade)];
  }
  uint64_t pieces(report::Leaf leaf) const { return pieces_[leaf_index(leaf)]; }

  // Moves time of one leaf in one span to another leaf (B5: communication split by rank).
  void move(size_t span, report::Leaf from, report::Leaf to, Ns ns, Grade grade);

 private:
  size_t seek(Ns time_ns);

  std::vector<LedgerSpan> spans_;
  std::vector<Row> rows_;
  Row totals_{};
  std::array<std::array<Ns, 3>, kLeafCount> grades_{};
  std::array<uint64_t, kLeafCount> pieces_{};
  size_t cursor_ = 0;
};

}  // namespace idlescope::diagnose
