#include "analysis/diagnose/device_states.h"

#include <algorithm>
#include <tuple>

namespace idlescope::diagnose {

using model::Work;

namespace {

// Disagreement of host and device clocks that the fit may leave.
constexpr Ns kClockError = 30'000;

}  // namespace

DeviceStates::DeviceStates(const model::Model& model, const model::DeviceTimeline& device,
                           const Constants& constants, const CallLeaf& calls, const GapSplit& gaps)
    : device_(device),
      process_(model.process_of(device)),
      owner_(model.processes[device.process]),
      calls_(calls),
      gaps_(gaps),
      host_return_max_ns_(std::max<Ns>(100'000, 10 * constants.sync_return_ns)) {
  index_edges();
}

void DeviceStates::index_edges() {
  for (const read::EventEdge& edge : process_.event_edges) {
    if (edge.record_call == kNone || edge.wait_call == kNone) continue;
    const read::Call& record = process_.calls[edge.record_call];
    const read::Call& wait = process_.calls[edge.wait_call];
    const uint32_t producer = process_.call_descriptors[record.descriptor].stream;
    const uint32_t consumer = process_.call_descriptors[wait.descriptor].stream;
    if (calls_.call_class(edge.wait_call) != trace::CALL_STREAM_WAIT_EVENT) continue;
    edges_.push_back({consumer, wait.begin_ns, producer, record.begin_ns});
  }
  std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.consumer_stream, a.wait_ns) < std::tie(b.consumer_stream, b.wait_ns);
  });
}

// A recorded wait on the consumer's stream, before its launch, for an event recorded on the
// producer's stream after the producer's launch.
bool DeviceStates::edge_between(const read::Op& producer, const read::Op& consumer) const {
  if (edges_.empty()) return false;
  const uint32_t consumer_stream = process_.op_descriptors[consumer.descriptor].stream;
  const uint32_t producer_stream = process_.op_descriptors[producer.descriptor].stream;
  const Ns launched = model::launch_time(process_, producer);
  const Ns wanted = model::launch_time(process_, consumer);
  auto it = std::upper_bound(edges_.begin(), edges_.end(), std::make_pair(consumer_stream, wanted),
                             [](const std::pair<uint32_t, Ns>& key, const Edge& edge) {
                               return key < std::make_pair(edge.consumer_stream, edge.wait_ns);
                             });
  for (int steps = 0; it != edges_.begin() && steps < 64; ++steps) {
    --it;
    if (it->consumer_stream != consumer_stream) break;
    if (it->producer_stream == producer_stream && it->record_ns >= launched) return true;
  }
  return false;
}

// The thread of `call` was inside a call that waited for the device and returned with `op`.
bool DeviceStates::host_waited(uint32_t o, uint32_t call) const {
  if (call == kNone) return false;
  const read::Op& op = process_.ops[o];
  const model::ThreadTimeline* thread =
      owner_.threads.find(process_.call_descriptors[process_.calls[call].descriptor].thread_id);
  if (thread == nullptr) return false;
  // The device's clock may run late: then the call returns before the op seems to end, and
  // the thread may have begun something else by then.
  for (size_t i = thread->last_before(op.end_ns); i != model::ThreadTimeline::npos; --i) {
    const model::Segment& segment = thread->segments[i];
    if (segment.end_ns < op.end_ns - kClockError) return false;
    if (segment.source == model::Source::kCall && calls_.waits(segment.ref)) {
      return segment.end_ns - op.end_ns <= host_return_max_ns_;
    }
    if (i == 0) break;
  }
  return false;
}

// How soon after the end of `op` a queued op must start to have waited for it, where no
// edge is recorded: the longer the op, the less likely is coincidence.
Ns DeviceStates::follow_limit(uint32_t op) const {
  const Ns length = process_.ops[op].end_ns - process_.ops[op].begin_ns;
  return std::max<Ns>(Constants::kLatencyMax, std::min<Ns>(100'000, length / 100));
}

bool DeviceStates::is_exposed(uint32_t last_op, Ns chain_end_ns, uint32_t next_compute,
                              Grade& grade) const {
  const read::Op& last = process_.ops[last_op];
  bool inferred = false;
  grade = Grade::kA;
  if (next_compute == kNone) {
    // Nothing computes after it in this window: it is what the device was there for.
    grade = Grade::kB;
    return true;
  }
  const read::Op& next = process_.ops[next_compute];
  const uint32_t next_call = gaps_.launch_of(next_compute, inferred);
  const Ns launched = next_call == kNone ? next.begin_ns : process_.calls[next_call].begin_ns;
  const bool same_stream = process_.op_descriptors[next.descriptor].stream ==
                           process_.op_descriptors[last.descriptor].stream;
  if (launched < chain_end_ns && (same_stream || edge_between(last, next))) return true;
  if (host_waited(last_op, last.call) || host_waited(last_op, next_call)) return true;
  if (next_call != kNone && process_.calls[next_call].end_ns <= chain_end_ns &&
      next.begin_ns - chain_end_ns <= follow_limit(last_op)) {
    grade = Grade::kB;
    return true;
  }
  return false;
}

// Turns parts_ (by begin) into runs without holes.
void DeviceStates::find_runs() {
  runs_.clear();
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (runs_.empty() || part.begin_ns > runs_.back().end_ns) {
      runs_.push_back({part.begin_ns, part.end_ns, i, i + 1, false, true, Grade::kA});
    } else {
      runs_.back().end_ns = std::max(runs_.back().end_ns, part.end_ns);
      runs_.back().last = i + 1;
    }
    if (part.work != Work::kMemory) runs_.back().memory_only = false;
  }
}

// A chain is a sequence of runs at most ℓ_max apart; it is exposed as a whole.
void DeviceStates::judge_chains(uint32_t next_compute) {
  for (size_t first = 0; first < runs_.size();) {
    size_t last = first + 1;
    while (last < runs_.size() &&
           runs_[last].begin_ns - runs_[last - 1].end_ns <= Constants::kLatencyMax) {
      ++last;
    }
    const Run& final_run = runs_[last - 1];
    uint32_t last_op = kNone;
    for (size_t i = final_run.first; i < final_run.last; ++i) {
      if (last_op == kNone || process_.ops[parts_[i].op].end_ns > process_.ops[last_op].end_ns) {
        last_op = parts_[i].op;
      }
    }
    Grade grade = Grade::kA;
    const bool exposed = is_exposed(last_op, final_run.end_ns, next_compute, grade);
    for (size_t r = first; r < last; ++r) {
      runs_[r].exposed = exposed || runs_[r].memory_only;
      runs_[r].grade = runs_[r].memory_only ? Grade::kA : grade;
    }
    // Inside the chain the host, or memory work, may have waited for an earlier op of it.
    for (size_t r = first; r < last && !exposed; ++r) {
      if (!runs_[r].exposed) judge_run(r);
    }
    first = last;
  }
}

// One run of a chain that as a whole is not exposed.
void DeviceStates::judge_run(size_t r) {
  Run& run = runs_[r];
  uint32_t last_op = kNone;
  for (size_t i = run.first; i < run.last; ++i) {
    const Part& part = parts_[i];
    if (last_op == kNone || process_.ops[part.op].end_ns > process_.ops[last_op].end_ns) {
      last_op = part.op;
    }
    if (part.work != Work::kMemory && host_waited(part.op, process_.ops[part.op].call)) {
      run.exposed = true;
      run.grade = Grade::kA;
      return;
    }
  }
  if (r + 1 < runs_.size() && parts_[runs_[r + 1].first].work == Work::kMemory) {
    run.exposed = is_exposed(last_op, run.end_ns, parts_[runs_[r + 1].first].op, run.grade);
  }
}

// Elementary intervals of one run; where several ops are active: memory first, else the one
// that ends later.
void DeviceStates::emit_run(const Run& run, StateSink& sink) const {
  const auto leaf_of = [&](const Part& part) {
    if (part.work == Work::kMemory) return report::BUSY_MEM;
    if (part.work == Work::kComm) return report::BUSY_COMM_EXPOSED;
    return calls_.exposed_copy(process_.ops[part.op]);
  };
  const auto emit = [&](Ns begin_ns, Ns end_ns, const Part& part) {
    Piece piece;
    piece.begin_ns = begin_ns;
    piece.end_ns = end_ns;
    piece.leaf = leaf_of(part);
    piece.grade = part.work == Work::kMemory ? Grade::kA : run.grade;
    piece.op = part.op;
    if (piece.leaf != report::BUSY_MEM) piece.call = process_.ops[part.op].call;
    sink.busy(piece);
  };
  if (run.last - run.first == 1) {
    emit(run.begin_ns, run.end_ns, parts_[run.first]);
    return;
  }
  std::vector<Ns> cuts;
  for (size_t i = run.first; i < run.last; ++i) {
    cuts.push_back(parts_[i].begin_ns);
    cuts.push_back(parts_[i].end_ns);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<size_t> active;
  size_t next = run.first;
  for (size_t c = 0; c + 1 < cuts.size(); ++c) {
    while (next < run.last && parts_[next].begin_ns <= cuts[c]) active.push_back(next++);
    std::erase_if(active, [&](size_t i) { return parts_[i].end_ns <= cuts[c]; });
    size_t best = active.front();
    for (const size_t i : active) {
      const auto key = [&](size_t x) {
        return std::make_pair(parts_[x].work == Work::kMemory, parts_[x].end_ns);
      };
      if (key(i) > key(best)) best = i;
    }
    emit(cuts[c], cuts[c + 1], parts_[best]);
  }
}

void DeviceStates::absence(Ns begin_ns, Ns end_ns, uint32_t next_compute, StateSink& sink) {
  parts_.clear();
  for (const uint32_t o : pending_) {
    const read::Op& op = process_.ops[o];
    const Ns from = std::max(begin_ns, op.begin_ns);
    const Ns to = std::min(end_ns, op.end_ns);
    if (to > from) parts_.push_back({from, to, o, owner_.work[op.descriptor]});
  }
  for (const Part& part : parts_) {
    if (part.work == Work::kCopy) hidden_.copy_ns -= part.end_ns - part.begin_ns;
    if (part.work == Work::kComm) hidden_.comm_ns -= part.end_ns - part.begin_ns;
  }
  uint32_t previous = last_ended_;
  Ns at = begin_ns;
  if (!parts_.empty()) {
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const Part& a, const Part& b) { return a.begin_ns < b.begin_ns; });
    find_runs();
    judge_chains(next_compute);
    for (const Run& run : runs_) {
      if (!run.exposed) {  // coincident: the gap goes on below it
        for (size_t i = run.first; i < run.last; ++i) {
          sink.coincident(parts_[i].op, parts_[i].begin_ns, parts_[i].end_ns);
        }
        continue;
      }
      if (run.begin_ns > at) sink.gap(at, run.begin_ns, parts_[run.first].op, previous);
      emit_run(run, sink);
      at = run.end_ns;
      previous = parts_[run.first].op;
      for (size_t i = run.first; i < run.last; ++i) {
        if (process_.ops[parts_[i].op].end_ns > process_.ops[previous].end_ns) {
          previous = parts_[i].op;
        }
      }
    }
  }
  if (at < end_ns && next_compute != kNone) sink.gap(at, end_ns, next_compute, previous);
}

Ns DeviceStates::sweep(size_t first, size_t last, Ns begin_ns, StateSink& sink) {
  pending_.clear();
  last_ended_ = kNone;
  Ns compute_end = begin_ns;
  for (size_t i = first; i < last; ++i) {
    const uint32_t o = device_.ops[i];
    const read::Op& op = process_.ops[o];
    const Work work = owner_.work[op.descriptor];
    if (work != Work::kCompute) {
      if (op.end_ns > op.begin_ns) {
        if (work == Work::kCopy) hidden_.copy_ns += op.end_ns - op.begin_ns;
        if (work == Work::kComm) hidden_.comm_ns += op.end_ns - op.begin_ns;
        if (op.end_ns > compute_end) pending_.push_back(o);
      }
      continue;
    }
    if (op.begin_ns > compute_end) {
      absence(compute_end, op.begin_ns, o, sink);
      std::erase_if(pending_, [&](uint32_t p) { return process_.ops[p].end_ns <= op.begin_ns; });
      compute_end = op.begin_ns;
    }
    if (op.end_ns > compute_end) {
      Piece piece;
      piece.begin_ns = compute_end;
      piece.end_ns = op.end_ns;
      piece.leaf = report::BUSY_COMPUTE;
      sink.busy(piece);
      compute_end = op.end_ns;
      last_ended_ = o;
    }
  }
  Ns end = compute_end;
  for (const uint32_t p : pending_) end = std::max(end, process_.ops[p].end_ns);
  if (end > compute_end) absence(compute_end, end, kNone, sink);
  return end;
}

}  // namespace idlescope::diagnose
