#include "analysis/simulate/blocking_replay.h"

#include <algorithm>

namespace idlescope::simulate {

// By how much the device would be earlier at `time`, as charged so far.
Ns BlockingReplay::shift_at(Ns time) const {
  Ns by = 0;
  for (const Shift& shift : shifts_) {
    if (shift.from_ns <= time) by = shift.by_ns;
  }
  return by;
}

// Return of a later blocking call that would be entered at `at`: what it waits for ends as
// much earlier as the device is ahead by then.
Ns BlockingReplay::blocking_end(const Piece& piece, Ns at) const {
  uint32_t op = walk_.awaited_op(piece.thread, piece.segment);
  if (op == kNone) return at + (piece.end_ns - piece.begin_ns);
  const Instruction& in =
      program_.threads[piece.thread].code[run_.threads[piece.thread][piece.segment].instruction];
  Ns work = in.what == Do::kSync ? in.ns : 0;
  Ns awaited = run_.ops[op].end_ns - shift_at(run_.ops[op].end_ns);
  return std::max(at, awaited) + program_.machine.sync_return_ns + work;
}

// The host's pieces behind the call, begun when the call began. Returns when the last one
// would end; `replayed` gets what would happen from `since` on, in replayed time.
Ns BlockingReplay::host_replayed(std::span<const Piece> pieces, Ns since,
                                 std::vector<LabelledSpan>* replayed) const {
  const Piece& call = pieces.front();
  Ns at = call.full_begin_ns;
  auto until = [&](Ns to, Leaf leaf) {
    Ns from = std::max(at, since);
    if (to > from) replayed->push_back({from, to, leaf});
    at = to;
  };
  size_t first = 1;
  // A blocking copy is two calls (copy, then stream synchronisation): one thing to remove.
  while (first < pieces.size() && pieces[first].kind == Piece::Kind::kBlocking &&
         pieces[first].leaf == call.leaf) {
    ++first;
  }
  for (size_t i = first; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.kind == Piece::Kind::kBatch) {
      Ns wake = std::max<Ns>(0, piece.end_ns - std::max(piece.ready_ns, piece.begin_ns));
      Ns to = at >= piece.ready_ns ? at : piece.ready_ns + wake;
      Ns from = std::max(at, since);
      if (to > from) {
        for (const Piece& stage : walk_.batch_stages(piece.batch, from, to)) {
          replayed->push_back({stage.begin_ns, stage.end_ns, stage.leaf});
        }
      }
      at = to;
    } else if (piece.kind == Piece::Kind::kBlocking) {
      until(blocking_end(piece, at), piece.leaf);
    } else {
      until(at + (piece.end_ns - piece.begin_ns), piece.leaf);
    }
  }
  return at;
}

std::vector<LabelledSpan> BlockingReplay::replay(std::span<const Piece> pieces, Ns begin, Ns end,
                                                 uint32_t op, Ns start) {
  if (pieces.empty()) return {};
  auto current = [&] {
    return pieces.front().thread == thread_ && pieces.front().segment == segment_;
  };
  std::vector<Piece> longer;
  if (pieces.front().kind == Piece::Kind::kBlocking && pieces.front().full_begin_ns < begin &&
      !current()) {
    thread_ = pieces.front().thread;
    segment_ = pieces.front().segment;
    begin_ns_ = begin;
    shifts_.clear();
  } else if (thread_ == kNone) {
    return {};
  } else {
    longer = walk_.launch_chain(op, begin_ns_, start);
    pieces = longer;
    if (pieces.empty() || !current()) return {};
  }

  // The gap would begin `shift` earlier, and end when the replayed host has launched `op`.
  Ns shift = shift_at(begin);
  std::vector<LabelledSpan> replayed;
  Ns launched = host_replayed(pieces, begin - shift, &replayed);
  Ns left = std::clamp<Ns>(launched - (begin - shift), 0, start - begin);
  Ns split = start - left;
  std::vector<LabelledSpan> out;
  auto emit = [&](Ns from, Ns to, Leaf leaf) {
    from = std::max(from, out.empty() ? begin : out.back().end_ns);
    to = std::min(to, end);
    if (to > from) out.push_back({from, to, leaf});
  };
  emit(begin, split, pieces.front().leaf);
  Ns charged = out.empty() ? 0 : out.back().end_ns - begin;
  for (const LabelledSpan& span : replayed) {
    emit(span.begin_ns - launched + start, span.end_ns - launched + start, span.leaf);
  }
  if (out.empty() || out.back().end_ns < end) {
    emit(out.empty() ? begin : out.back().end_ns, end, report::DISPATCH);
  }
  if (charged > 0) shifts_.push_back({end, shift + charged});
  if (end == start && start - launched <= shift + charged) recovered();
  return out;
}

}  // namespace idlescope::simulate
