#include "analysis/diagnose/local_replay.h"

#include <algorithm>

namespace idlescope::diagnose {

void emit_host_piece(const HostPiece& piece, Ns begin_ns, Ns end_ns, const LoaderStages& stages,
                     Pieces& out) {
  if (end_ns <= begin_ns) return;
  if (piece.kind == HostPiece::Kind::kData) {
    const size_t mark = out.size();
    stages.cut(piece.batch, begin_ns, end_ns, out);
    for (size_t i = mark; i < out.size(); ++i) {
      out[i].grade = std::max(out[i].grade, piece.grade);
      out[i].thread = piece.thread;
    }
    return;
  }
  Piece p;
  p.begin_ns = begin_ns;
  p.end_ns = end_ns;
  p.leaf = piece.leaf;
  p.grade = piece.grade;
  p.call = piece.call;
  p.batch = piece.batch;
  p.thread = piece.thread;
  out.push_back(p);
}

// One wait of the program may be several calls: .item() is a copy that waits and a stream
// sync right after it. Returns the index after the last call of the wait that host.front()
// begins.
size_t end_of_episode(const std::vector<HostPiece>& host) {
  constexpr Ns kSameWait = 50'000;
  size_t end = 1;
  Ns host_work = 0;
  for (size_t i = 1; i < host.size(); ++i) {
    if (host[i].kind == HostPiece::Kind::kWaits) {
      end = i + 1;
      host_work = 0;
      continue;
    }
    host_work += host[i].end_ns - host[i].begin_ns;
    if (host_work > kSameWait || host[i].kind == HostPiece::Kind::kData) break;
  }
  return end;
}

namespace {

struct Step {
  const HostPiece* piece;
  Ns begin_ns;  // when it would run
  Ns end_ns;
};

// Runs host[first…] again from `at`. Waits before `episode` and those of leaf `gone` take no
// time, others still wait for the device, which drains at g0; with `no_waits` none does.
// Returns when it ends.
Ns run_again(const std::vector<HostPiece>& host, size_t first, size_t episode, report::Leaf gone,
             bool no_waits, Ns at, Ns g0, const Constants& constants, const LoaderStages& stages,
             std::vector<Step>& steps) {
  steps.clear();
  for (size_t i = first; i < host.size(); ++i) {
    const HostPiece& piece = host[i];
    const bool waits = piece.kind == HostPiece::Kind::kWaits;
    if (waits && (no_waits || i < episode || piece.leaf == gone)) continue;
    const Ns length = piece.end_ns - piece.begin_ns;
    Ns end = at + length;
    if (piece.kind == HostPiece::Kind::kData && !stages.made_inline(piece.batch)) {
      // Hand-out after the batch was there is work; before it, waiting.
      const Ns ready = std::min(stages.ready_ns(piece.batch), piece.end_ns);
      const Ns hand_out = piece.end_ns - std::max(ready, piece.begin_ns);
      end = std::max(at, ready) + hand_out;
    } else if (waits) {
      end = std::max(at, g0) + std::min(length, constants.sync_return_ns);
    } else if (piece.leaf == report::NOTEBOOK_IDLE) {
      end = std::max(at, piece.end_ns);  // the user starts the next cell when he does
    }
    steps.push_back({&piece, at, end});
    at = end;
  }
  return at;
}

}  // namespace

void replay_without(const std::vector<HostPiece>& host, bool straddles, Ns g0, Ns g1,
                    const Constants& constants, const LoaderStages& stages, RunAhead& ahead,
                    Pieces& out) {
  std::vector<Step> steps;
  const Ns lead = ahead.lead_ns();
  const size_t episode = straddles ? end_of_episode(host) : 0;
  const size_t first = straddles ? 1 : 0;
  // Who removes one such wait removes its like beside it.
  const report::Leaf gone = straddles ? host.front().leaf : report::LEAF_UNSPECIFIED;
  const Ns start = straddles ? host.front().whole_begin_ns : g0;
  if (straddles) {
    const Ns alone =
        run_again(host, first, episode, gone, false, start, g0, constants, stages, steps);
    ahead.earn(host.front(), g1 - alone);
  }
  const Ns at =
      run_again(host, first, episode, gone, lead > 0, start - lead, g0, constants, stages, steps);
  const Ns stays = std::clamp<Ns>(at - g0, 0, g1 - g0);
  const Ns wanted = g1 - g0 - stays;
  const Ns paid = std::min(wanted, ahead.lead_ns());
  const Ns cut = g0 + paid;  // the waits' part is [g0, cut)
  const size_t before = out.size();
  ahead.spend(g0, paid,
              straddles && stays == 0 && host.size() == 1 ? host.front().grade : Grade::kB, out);
  ahead.keep_at_most(std::max<Ns>(0, g0 - at));
  if (straddles && out.size() > before) {
    out[before].grade = std::max(out[before].grade, host.front().grade);
  }
  if (cut == g1) return;
  // Replayed time [g0, g0 + g1 - cut) is drawn at [cut, g1).
  const Ns shift = cut - g0;
  const Ns left = g1 - cut;
  const size_t mark = out.size();
  Ns done = g0;
  for (const Step& step : steps) {
    const Ns begin = std::max(done, step.begin_ns);
    const Ns end = std::min(step.end_ns, g0 + left);
    if (end <= begin) continue;
    if (step.piece->kind == HostPiece::Kind::kData && stages.made_inline(step.piece->batch)) {
      // Stages move with the call that makes the batch.
      const Ns moved = step.begin_ns - step.piece->begin_ns;
      const size_t from = out.size();
      emit_host_piece(*step.piece, begin - moved, end - moved, stages, out);
      for (size_t i = from; i < out.size(); ++i) {
        out[i].begin_ns += moved;
        out[i].end_ns += moved;
      }
    } else {
      emit_host_piece(*step.piece, begin, end, stages, out);
    }
    done = end;
  }
  if (done < g0 + left && !steps.empty()) {
    // The replay ended early (a piece shrank to nothing): the rest is the last piece's.
    emit_host_piece(*steps.back().piece, done, g0 + left, stages, out);
  }
  for (size_t i = mark; i < out.size(); ++i) {
    out[i].begin_ns += shift;
    out[i].end_ns += shift;
    out[i].grade = std::max(out[i].grade, Grade::kB);
  }
}

}  // namespace idlescope::diagnose
