#include "analysis/simulate/device_labels.h"

#include <algorithm>

#include "analysis/simulate/blocking_replay.h"
#include "analysis/simulate/thread_walk.h"

namespace idlescope::simulate {
namespace {

constexpr Ns kQueuedGapNs = 15000;  // longest gap that is plain dispatch (analysis A2)

class DeviceLabels {
 public:
  DeviceLabels(const Program& program, const Execution& run, uint16_t rank)
      : program_(program),
        run_(run),
        walk_(program, run),
        blocking_(program, run, walk_),
        rank_(rank) {}
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
  void late(std::span<const Piece> pieces, Ns begin, Ns end, uint32_t op, Ns start);

  const Program& program_;
  const Execution& run_;
  ThreadWalk walk_;
  BlockingReplay blocking_;
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

// [begin, end) passed without compute because `op`, which began at `start`, was launched late:
// `pieces`, its launch chain.
void DeviceLabels::late(std::span<const Piece> pieces, Ns begin, Ns end, uint32_t op, Ns start) {
  std::vector<LabelledSpan> spans = blocking_.replay(pieces, begin, end, op, start);
  if (!spans.empty()) {
    for (const LabelledSpan& span : spans) emit(span.begin_ns, span.end_ns, span.leaf);
    return;
  }
  for (const Piece& piece : pieces) {
    Ns from = std::max(begin, piece.begin_ns);
    Ns to = std::min(end, piece.end_ns);
    if (from >= end) break;
    if (to <= from) continue;
    if (piece.kind != Piece::Kind::kBatch) {
      emit(from, to, piece.leaf);
      continue;
    }
    for (const Piece& stage : walk_.batch_stages(piece.batch, from, to)) {
      emit(stage.begin_ns, stage.end_ns, stage.leaf);
    }
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
    late(walk_.launch_chain(op, begin, until), begin, until, op, until);
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
  std::vector<Piece> why;
  size_t at = 0;  // first piece that ends behind the current span
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
    // It only coincides: why was `next` late?
    if (why.empty()) why = walk_.launch_chain(next, begin, end);
    while (at < why.size() && why[at].end_ns <= from) ++at;
    late(std::span(why).subspan(at), from, to, next, end);
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
    // It was launched before it could begin: the host is ahead of the device again.
    if (r.bound != Bound::kLaunch) blocking_.recovered();
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
