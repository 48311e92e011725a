#include "analysis/simulate/device_labels.h"

#include <algorithm>

#include "analysis/simulate/thread_walk.h"

namespace idlescope::simulate {
namespace {

constexpr Ns kQueuedGapNs = 15000;  // longest gap that is plain dispatch (analysis A2)

class DeviceLabels {
 public:
  DeviceLabels(const Program& program, const Execution& run, uint16_t rank)
      : program_(program), run_(run), walk_(program, run), rank_(rank) {}
  std::vector<LabelledSpan> label();

 private:
  struct Exposed {
    uint32_t op;
    Ns begin_ns;
    Ns end_ns;
  };

  bool compute(uint32_t op) const {
    const OpSpec& spec = program_.ops[op];
    return spec.kind == trace::OP_KERNEL && !spec.communication;
  }
  bool memory(uint32_t op) const {
    const OpSpec& spec = program_.ops[op];
    return spec.kind == trace::OP_MEMSET ||
           (spec.kind == trace::OP_MEMCPY && spec.copy_kind == trace::COPY_D2D);
  }
  void emit(Ns begin, Ns end, Leaf leaf);
  void absent(Ns begin, Ns end, uint32_t next, const std::vector<uint32_t>& others);
  std::vector<Exposed> exposed(uint32_t next, Ns stop) const;
  void add_chain(uint32_t op, Ns stop, Ns clip_begin, Ns clip_end, std::vector<Exposed>* out) const;
  void exposed_span(const Exposed& by, Ns begin, Ns end);
  void gap(Ns begin, Ns end, uint32_t op);
  std::vector<Piece> chain_of(uint32_t op, Ns begin, Ns end) const;
  void emit_pieces(const std::vector<Piece>& pieces, Ns begin, Ns end);
  void replay(const std::vector<Piece>& pieces, Ns begin, Ns end);

  const Program& program_;
  const Execution& run_;
  ThreadWalk walk_;
  uint16_t rank_;
  std::vector<LabelledSpan> out_;
};

void DeviceLabels::emit(Ns begin, Ns end, Leaf leaf) {
  if (end <= begin) return;
  if (!out_.empty() && out_.back().end_ns == begin && out_.back().leaf == leaf) {
    out_.back().end_ns = end;
    return;
  }
  out_.push_back({begin, end, leaf});
}

// Ops that `op` waited for, one behind the other, as long as they are no compute.
void DeviceLabels::add_chain(uint32_t op, Ns stop, Ns clip_begin, Ns clip_end,
                             std::vector<Exposed>* out) const {
  while (op != kNone && !compute(op) && run_.ops[op].end_ns > stop) {
    Ns begin = std::max(clip_begin, run_.ops[op].begin_ns);
    Ns end = std::min(clip_end, run_.ops[op].end_ns);
    if (begin < end) out->push_back({op, begin, end});
    op = run_.ops[op].bound == Bound::kLaunch ? kNone : run_.ops[op].bound_op;
  }
}

// Copies and collectives that the compute op `next` really waited for: through the device
// (stream order, event, engine) or through a host thread that waited for them.
std::vector<DeviceLabels::Exposed> DeviceLabels::exposed(uint32_t next, Ns stop) const {
  std::vector<Exposed> out;
  uint32_t op = next;
  while (run_.ops[op].bound != Bound::kLaunch) {
    uint32_t by = run_.ops[op].bound_op;
    if (compute(by)) return out;
    add_chain(by, stop, stop, run_.ops[by].end_ns, &out);
    op = by;
    if (run_.ops[op].begin_ns <= stop) return out;
  }
  const OpRun& launched = run_.ops[op];
  Ns cursor = run_.threads[launched.thread][launched.segment].begin_ns;
  for (const Piece& piece : walk_.back(launched.thread, cursor, stop)) {
    if (piece.kind != Piece::Kind::kBlocking) continue;
    add_chain(walk_.awaited_op(piece.thread, piece.segment), stop, piece.full_begin_ns,
              piece.end_ns, &out);
  }
  return out;
}

void DeviceLabels::exposed_span(const Exposed& by, Ns begin, Ns end) {
  const OpSpec& spec = program_.ops[by.op];
  if (!spec.communication) {
    emit(begin, end, spec.exposed_leaf);
    return;
  }
  // All ranks transfer during the last duration_ns; before that this rank waits for others.
  Ns transfer = std::clamp(run_.ops[by.op].end_ns - spec.duration_ns, begin, end);
  emit(begin, transfer, report::COMM_STRAGGLER);
  emit(transfer, end, report::COMM_TRANSFER);
}

std::vector<Piece> DeviceLabels::chain_of(uint32_t op, Ns begin, Ns end) const {
  const OpRun& launched = run_.ops[op];
  const Segment& call = run_.threads[launched.thread][launched.segment];
  std::vector<Piece> pieces = walk_.back(launched.thread, std::min(call.begin_ns, end), begin);
  Ns from = std::max(begin, call.begin_ns);
  if (from < end) {
    const Instruction& in = program_.threads[launched.thread].code[call.instruction];
    Piece piece;
    if (call.locked_until_ns > from) {
      piece.begin_ns = piece.full_begin_ns = from;
      piece.end_ns = std::min(call.locked_until_ns, end);
      piece.leaf = report::ALLOC_LOCK;
      pieces.push_back(piece);
      from = piece.end_ns;
    }
    piece.begin_ns = from;
    piece.full_begin_ns = from;
    piece.end_ns = end;
    piece.leaf = in.leaf;
    if (from < end) pieces.push_back(piece);
  }
  return pieces;
}

void DeviceLabels::emit_pieces(const std::vector<Piece>& pieces, Ns begin, Ns end) {
  for (const Piece& piece : pieces) {
    Ns from = std::max(begin, piece.begin_ns);
    Ns to = std::min(end, piece.end_ns);
    if (to <= from) continue;
    if (piece.kind == Piece::Kind::kBatch) {
      for (const Piece& stage : walk_.batch_stages(piece.batch, from, to)) {
        emit(stage.begin_ns, stage.end_ns, stage.leaf);
      }
    } else {
      emit(from, to, piece.leaf);
    }
  }
}

// B3: the pieces behind a blocking call, run again as if the call had returned when it began.
// What the gap shrinks by is the call's; the rest keeps the labels of the replayed pieces.
void DeviceLabels::replay(const std::vector<Piece>& pieces, Ns begin, Ns end) {
  const Piece& call = pieces.front();
  Ns at = call.full_begin_ns;
  std::vector<LabelledSpan> replayed;
  auto add = [&](Ns from, Ns to, Leaf leaf) {
    from = std::max(from, begin);
    if (to > from) replayed.push_back({from, to, leaf});
  };
  size_t first = 1;
  // A blocking copy is two calls (copy, then stream synchronisation): one thing to remove.
  while (first < pieces.size() && pieces[first].kind == Piece::Kind::kBlocking &&
         pieces[first].leaf == call.leaf) {
    ++first;
  }
  for (size_t i = first; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    Ns length = piece.end_ns - piece.begin_ns;
    if (piece.kind == Piece::Kind::kBatch) {
      Ns wake = piece.end_ns - std::max(piece.ready_ns, piece.begin_ns);
      Ns to = at >= piece.ready_ns ? at : piece.ready_ns + std::max<Ns>(wake, 0);
      if (to > std::max(at, begin)) {
        for (const Piece& stage : walk_.batch_stages(piece.batch, std::max(at, begin), to)) {
          add(stage.begin_ns, stage.end_ns, stage.leaf);
        }
      }
      at = to;
    } else if (piece.kind == Piece::Kind::kBlocking) {
      Ns to = std::max(at, begin) + program_.machine.sync_return_ns;
      add(at, to, piece.leaf);
      at = to;
    } else {
      add(at, at + length, piece.leaf);
      at += length;
    }
  }
  Ns left = std::clamp<Ns>(at - begin, 0, end - begin);
  Ns split = end - left;
  emit(begin, split, call.leaf);
  for (const LabelledSpan& span : replayed) {
    Ns from = std::min(end, span.begin_ns - begin + split);
    Ns to = std::min(end, span.end_ns - begin + split);
    emit(from, to, span.leaf);
  }
}

// An idle gap, ended by `op`.
void DeviceLabels::gap(Ns begin, Ns end, uint32_t op) {
  const OpSpec& spec = program_.ops[op];
  const OpRun& launched = run_.ops[op];
  const Segment& call = run_.threads[launched.thread][launched.segment];
  Ns floor = std::min(program_.machine.dispatch_gap_ns, end - begin);
  Ns until = end - floor;
  const Instruction& in = program_.threads[launched.thread].code[call.instruction];
  bool queued = call.end_ns <= begin || (spec.graph != 0 && spec.node > 0);
  if (queued) {
    Leaf leaf = report::DISPATCH;
    if (until - begin > kQueuedGapNs && launched.bound != Bound::kLaunch &&
        !compute(launched.bound_op)) {
      leaf = program_.ops[launched.bound_op].exposed_leaf;
    }
    emit(begin, until, leaf);
  } else if (in.blocking && call.begin_ns < begin) {
    // The copy's own call was under way: staging.
    emit(begin, until, in.leaf);
  } else {
    std::vector<Piece> pieces = chain_of(op, begin, until);
    bool straddles = !pieces.empty() && pieces.front().kind == Piece::Kind::kBlocking &&
                     pieces.front().full_begin_ns < begin;
    if (straddles) {
      replay(pieces, begin, until);
    } else {
      emit_pieces(pieces, begin, until);
    }
  }
  emit(until, end, report::DISPATCH);
}

// A stretch without compute, ended by compute op `next`; `others` overlap it.
void DeviceLabels::absent(Ns begin, Ns end, uint32_t next, const std::vector<uint32_t>& others) {
  if (others.empty()) {
    gap(begin, end, next);
    return;
  }
  std::vector<Exposed> path = exposed(next, begin);
  std::vector<Ns> cuts{begin, end};
  auto cut = [&](Ns t) {
    if (t > begin && t < end) cuts.push_back(t);
  };
  for (uint32_t op : others) {
    cut(run_.ops[op].begin_ns);
    cut(run_.ops[op].end_ns);
  }
  for (const Exposed& e : path) {
    cut(e.begin_ns);
    cut(e.end_ns);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Piece> why;  // why `next` was late, for spans that only coincide
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    Ns from = cuts[i];
    Ns to = cuts[i + 1];
    bool active = false;
    bool device_memory = false;
    uint32_t starts = kNone;  // op that begins where this span ends
    for (uint32_t op : others) {
      const OpRun& r = run_.ops[op];
      if (r.begin_ns < to && r.end_ns > from) {
        active = true;
        device_memory = device_memory || memory(op);
      }
      if (r.begin_ns == to && (starts == kNone || r.order < run_.ops[starts].order)) starts = op;
    }
    if (device_memory) {
      emit(from, to, report::BUSY_MEM);
      continue;
    }
    if (!active) {
      if (starts == kNone && to < end) {
        cuts[i + 1] = from;  // a cut inside an idle stretch: one gap with what follows
        continue;
      }
      gap(from, to, starts == kNone ? next : starts);
      continue;
    }
    const Exposed* by = nullptr;
    for (const Exposed& e : path) {
      if (e.begin_ns <= from && e.end_ns >= to &&
          (by == nullptr || run_.ops[e.op].end_ns > run_.ops[by->op].end_ns))
        by = &e;
    }
    if (by != nullptr) {
      exposed_span(*by, from, to);
      continue;
    }
    if (why.empty()) why = chain_of(next, begin, end);
    emit_pieces(why, from, to);
    if (!out_.empty() && out_.back().end_ns < to) emit(out_.back().end_ns, to, report::DISPATCH);
  }
}

std::vector<LabelledSpan> DeviceLabels::label() {
  std::vector<uint32_t> kernels;
  std::vector<uint32_t> others;
  for (uint32_t op = 0; op < program_.ops.size(); ++op) {
    if (program_.ops[op].rank != rank_ || run_.ops[op].begin_ns < 0) continue;
    (compute(op) ? kernels : others).push_back(op);
  }
  auto by_begin = [&](uint32_t a, uint32_t b) {
    const OpRun& x = run_.ops[a];
    const OpRun& y = run_.ops[b];
    return x.begin_ns != y.begin_ns ? x.begin_ns < y.begin_ns : x.order < y.order;
  };
  std::sort(kernels.begin(), kernels.end(), by_begin);
  std::sort(others.begin(), others.end(), by_begin);
  Ns at = -1;
  std::vector<uint32_t> alive;
  size_t next_other = 0;
  for (uint32_t op : kernels) {
    const OpRun& r = run_.ops[op];
    if (at < 0) at = r.begin_ns;
    if (r.begin_ns > at) {
      for (; next_other < others.size() && run_.ops[others[next_other]].begin_ns < r.begin_ns;
           ++next_other) {
        alive.push_back(others[next_other]);
      }
      std::erase_if(alive, [&](uint32_t o) { return run_.ops[o].end_ns <= at; });
      absent(at, r.begin_ns, op, alive);
      at = r.begin_ns;
    }
    if (r.end_ns > at) {
      emit(at, r.end_ns, report::BUSY_COMPUTE);
      at = r.end_ns;
    }
  }
  return std::move(out_);
}

}  // namespace

std::vector<LabelledSpan> label_device(const Program& program, const Execution& run,
                                       uint16_t rank) {
  return DeviceLabels(program, run, rank).label();
}

}  // namespace idlescope::simulate
