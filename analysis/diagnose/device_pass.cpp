#include "analysis/diagnose/device_pass.h"

#include <algorithm>
#include <utility>

#include "analysis/diagnose/gap_evidence.h"
#include "analysis/diagnose/gap_split.h"

namespace idlescope::diagnose {
namespace {

constexpr size_t kGapsKept = 100;

int64_t recording_cost_per_call(const read::Process& process) {
  int64_t cost = 0;
  for (const read::Window& window : process.windows) {
    cost = std::max(cost, window.end.per_call_cost_ns());
  }
  return cost;
}

// Puts busy pieces and split gaps into the ledger.
class Accountant : public StateSink {
 public:
  Accountant(const model::Model& model, const model::DeviceTimeline& device, GapSplit& gaps,
             DevicePass& pass)
      : process_(model.process_of(device)),
        gaps_(gaps),
        pass_(pass),
        evidence_(model, device),
        call_cost_ns_(recording_cost_per_call(process_)) {}

  void busy(const Piece& piece) override {
    pass_.ledger->add(piece);
    charge(piece);
    if (piece.op != kNone && pass_.ledger->covers(piece.begin_ns, piece.end_ns)) {
      pass_.waited_for[process_.ops[piece.op].descriptor] += piece.length_ns();
    }
  }

  void gap(Ns g0, Ns g1, uint32_t op, uint32_t previous) override {
    if (!pass_.ledger->covers(g0, g1)) {
      gaps_.forget();
      return;
    }
    pieces_.clear();
    const uint32_t hops = gaps_.split(g0, g1, op, previous, pieces_);
    subtract_recording();
    for (const Piece& piece : pieces_) {
      pass_.ledger->add(piece);
      charge(piece);
    }
    if (process_.ops[op].call == kNone) pass_.unjoined_ended_ns += g1 - g0;
    keep_if_long(g0, g1, op, hops);
  }

  void coincident(uint32_t op, Ns begin_ns, Ns end_ns) override {
    if (pass_.ledger->covers(begin_ns, end_ns)) {
      pass_.waited_for[process_.ops[op].descriptor] += end_ns - begin_ns;
    }
  }

  void finish() { std::sort_heap(pass_.gaps.begin(), pass_.gaps.end(), longer); }

 private:
  static bool longer(const Gap& a, const Gap& b) {
    const Ns x = a.end_ns - a.begin_ns;
    const Ns y = b.end_ns - b.begin_ns;
    return x != y ? x > y : a.begin_ns < b.begin_ns;
  }

  // A4: a launch took longer because it was recorded; that part is ours, not the job's.
  void subtract_recording() {
    if (call_cost_ns_ <= 0) return;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].leaf != report::LAUNCH_LEAF || pieces_[i].call == kNone) continue;
      Piece own = pieces_[i];
      own.end_ns = std::min(own.end_ns, own.begin_ns + call_cost_ns_);
      own.leaf = report::PROFILER;
      own.grade = Grade::kB;
      if (own.end_ns == pieces_[i].end_ns) {
        pieces_[i] = own;
      } else {
        pieces_[i].begin_ns = own.end_ns;
        pieces_.insert(pieces_.begin() + static_cast<ptrdiff_t>(i), own);
      }
      return;
    }
  }

  void charge(const Piece& piece) {
    if (piece.call == kNone || !pass_.ledger->covers(piece.begin_ns, piece.end_ns)) return;
    pass_.call_cost[process_.calls[piece.call].descriptor] += piece.length_ns();
  }

  void keep_if_long(Ns g0, Ns g1, uint32_t op, uint32_t hops) {
    const Ns length = g1 - g0;
    std::vector<Gap>& heap = pass_.gaps;
    if (heap.size() == kGapsKept && heap.front().end_ns - heap.front().begin_ns >= length) return;
    if (heap.size() == kGapsKept) {
      std::pop_heap(heap.begin(), heap.end(), longer);
      heap.pop_back();
    }
    heap.push_back(evidence_.describe(g0, g1, op, hops, pieces_));
    std::push_heap(heap.begin(), heap.end(), longer);
  }

  const read::Process& process_;
  GapSplit& gaps_;
  DevicePass& pass_;
  GapEvidence evidence_;
  int64_t call_cost_ns_;
  Pieces pieces_;
};

// Collects causes inside one stretch.
class Collector : public StateSink {
 public:
  Collector(GapSplit& gaps, Ns begin_ns, Ns end_ns, std::vector<GapPiece>& out)
      : gaps_(gaps), begin_(begin_ns), end_(end_ns), out_(out) {}

  void busy(const Piece& piece) override { add(piece); }
  void gap(Ns g0, Ns g1, uint32_t op, uint32_t previous) override {
    if (g1 <= begin_ || g0 >= end_) return;
    pieces_.clear();
    gaps_.split(g0, g1, op, previous, pieces_);
    for (const Piece& piece : pieces_) add(piece);
  }

 private:
  void add(const Piece& piece) {
    const Ns from = std::max(begin_, piece.begin_ns);
    const Ns to = std::min(end_, piece.end_ns);
    if (to <= from) return;
    if (!out_.empty() && out_.back().leaf == piece.leaf && out_.back().end_ns == from) {
      out_.back().end_ns = to;
      out_.back().grade = std::max(out_.back().grade, piece.grade);
      return;
    }
    out_.push_back({piece.leaf, from, to, piece.grade});
  }

  GapSplit& gaps_;
  Ns begin_;
  Ns end_;
  std::vector<GapPiece>& out_;
  Pieces pieces_;
};

std::vector<model::DeviceStep> choose_spans(const model::DeviceSteps& steps, bool& window_only) {
  std::vector<model::DeviceStep> spans;
  for (const model::DeviceStep& step : steps.steps) {
    if (step.steady) spans.push_back(step);
  }
  if (spans.empty()) spans = steps.steps;
  window_only = spans.empty();
  if (window_only) spans = steps.spans;
  return spans;
}

}  // namespace

DevicePass run_device_pass(const model::Model& model, uint32_t d) {
  bool window_only = false;
  std::vector<model::DeviceStep> spans = choose_spans(model.device_steps[d], window_only);
  DevicePass pass = run_device_pass(model, d, std::move(spans));
  pass.window_only = window_only;
  return pass;
}

DevicePass run_device_pass(const model::Model& model, uint32_t d,
                           std::vector<model::DeviceStep> analysed) {
  const model::DeviceTimeline& device = model.devices[d];
  const read::Process& process = model.process_of(device);
  DevicePass pass;
  pass.device = d;
  pass.constants = measure_constants(model, device);
  pass.spans = std::move(analysed);
  std::vector<LedgerSpan> spans;
  for (const model::DeviceStep& step : pass.spans) spans.push_back({step.begin_ns, step.end_ns});
  pass.ledger = std::make_unique<Ledger>(std::move(spans));
  pass.call_cost.assign(process.call_descriptors.size(), 0);
  pass.waited_for.assign(process.op_descriptors.size(), 0);

  const CallLeaf calls(model, device, pass.constants);
  GapSplit gaps(model, device, pass.constants, calls);
  DeviceStates states(model, device, pass.constants, calls, gaps);
  Accountant accountant(model, device, gaps, pass);
  Ns swept = INT64_MIN;
  for (const model::WindowSpan& window : device.windows) {
    gaps.forget();
    swept = states.sweep(window.first, window.last, std::max(window.begin_ns, swept), accountant);
  }
  accountant.finish();
  pass.hidden = states.hidden();
  pass.longest_unexplained_queue_ns = gaps.longest_unexplained_queue_ns();
  pass.ledger->close();
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    if (!pass.ledger->covers(op.begin_ns, op.begin_ns + 1)) continue;
    ++pass.ops;
    if (op.call == kNone) ++pass.unjoined;
  }
  return pass;
}

std::vector<GapPiece> causes_between(const model::Model& model, const DevicePass& pass, Ns begin_ns,
                                     Ns end_ns) {
  std::vector<GapPiece> causes;
  const model::DeviceTimeline& device = model.devices[pass.device];
  const read::Process& process = model.process_of(device);
  const CallLeaf calls(model, device, pass.constants);
  GapSplit gaps(model, device, pass.constants, calls);
  DeviceStates states(model, device, pass.constants, calls, gaps);
  Collector collector(gaps, begin_ns, end_ns, causes);
  Ns swept = INT64_MIN;
  for (const model::WindowSpan& window : device.windows) {
    if (window.end_ns <= begin_ns || window.begin_ns >= end_ns) continue;
    // From one stretch before, so that what is busy at the begin is known.
    const Ns from = std::max(window.begin_ns, begin_ns - (end_ns - begin_ns));
    const auto begin_of = [&](size_t i) { return process.ops[device.ops[i]].begin_ns; };
    size_t first = window.first;
    while (first < window.last && begin_of(first) < from) ++first;
    size_t last = first;
    while (last < window.last && begin_of(last) < end_ns) ++last;
    while (last < window.last && begin_of(last) < end_ns + (end_ns - begin_ns)) ++last;
    const Ns start = first == window.first ? window.begin_ns : from;
    swept = states.sweep(first, last, std::max(start, swept), collector);
  }
  return causes;
}

}  // namespace idlescope::diagnose
