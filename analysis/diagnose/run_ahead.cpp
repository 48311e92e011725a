#include "analysis/diagnose/run_ahead.h"

#include <algorithm>

namespace idlescope::diagnose {

void RunAhead::reset() {
  lead_ = 0;
  waits_.clear();
}

void RunAhead::earn(const HostPiece& wait, Ns ns) {
  if (ns <= 0) return;
  waits_.push_back({wait.leaf, wait.call, wait.thread, ns});
  lead_ += ns;
}

void RunAhead::spend(Ns begin_ns, Ns ns, Grade grade, Pieces& out) {
  const Ns end_ns = begin_ns + std::min(ns, lead_);
  for (Ns at = begin_ns; at < end_ns;) {
    Wait& wait = waits_.back();
    Piece piece;
    piece.begin_ns = at;
    piece.end_ns = std::min(end_ns, at + wait.ns);
    piece.leaf = wait.leaf;
    piece.call = wait.call;
    piece.thread = wait.thread;
    piece.grade = grade;
    out.push_back(piece);
    wait.ns -= piece.length_ns();
    lead_ -= piece.length_ns();
    at = piece.end_ns;
    if (wait.ns == 0) waits_.pop_back();
    grade = Grade::kB;  // waits before the last are an inference
  }
}

void RunAhead::keep_at_most(Ns ns) {
  ns = std::min(ns, limit_);
  while (lead_ > ns) {
    Wait& oldest = waits_.front();
    const Ns drop = std::min(oldest.ns, lead_ - ns);
    oldest.ns -= drop;
    lead_ -= drop;
    if (oldest.ns == 0) waits_.pop_front();
  }
}

}  // namespace idlescope::diagnose
