// Device ops: an op begins when its launch, its stream, its events and its copy engine allow,
// and ends after its duration; collectives end together.
#include <algorithm>

#include "analysis/simulate/engine_state.h"

namespace idlescope::simulate {

uint32_t Engine::engine_of(const OpSpec& spec) const {
  if (spec.kind != trace::OP_MEMCPY) return kNone;
  if (spec.copy_kind == trace::COPY_H2D) return spec.rank * 2U;
  if (spec.copy_kind == trace::COPY_D2H) return spec.rank * 2U + 1;
  return kNone;
}

void Engine::launch_op(uint32_t op, uint32_t thread, Ns now, Ns ready_ns) {
  const OpSpec& spec = program_.ops[op];
  OpState& state = ops_[op];
  OpRun& run = out_.ops[op];
  size_t stream = size_t{spec.rank} * kStreams + spec.stream;
  state.launched = true;
  state.ready_ns = ready_ns;
  state.stream_before = last_on_stream_[stream];
  run.thread = thread;
  run.segment = static_cast<uint32_t>(out_.threads[thread].size());
  run.order = launches_++;
  last_on_stream_[stream] = op;
  std::deque<uint32_t>& queue = queued_[stream];
  while (!queue.empty() && ops_[queue.front()].resolved &&
         out_.ops[queue.front()].begin_ns <= now) {
    queue.pop_front();
  }
  queue.push_back(op);

  auto depend = [&](uint32_t on) {
    if (ops_[on].resolved) return;
    op_dependents_[on].push_back(op);
    ++state.missing;
  };
  if (state.stream_before != kNone) depend(state.stream_before);
  for (uint32_t i = 0; i < spec.dep_count; ++i) depend(program_.deps[spec.first_dep + i]);
  if (state.missing == 0) resolve(op);
}

// All predecessors have a known end: the begin follows.
void Engine::resolve(uint32_t op) {
  const OpSpec& spec = program_.ops[op];
  const Machine& machine = program_.machine;
  OpRun& run = out_.ops[op];
  run.begin_ns = ops_[op].ready_ns;
  run.bound = Bound::kLaunch;
  auto bind = [&](Bound bound, uint32_t by, Ns gap) {
    Ns time = out_.ops[by].end_ns + gap;
    if (time <= run.begin_ns) return;
    run.begin_ns = time;
    run.bound = bound;
    run.bound_op = by;
  };
  uint32_t before = ops_[op].stream_before;
  if (before != kNone) {
    bool same_graph = spec.graph != 0 && spec.node > 0 && program_.ops[before].graph == spec.graph;
    bind(Bound::kStream, before, same_graph ? machine.graph_gap_ns : machine.dispatch_gap_ns);
  }
  for (uint32_t i = 0; i < spec.dep_count; ++i) {
    bind(Bound::kEvent, program_.deps[spec.first_dep + i], machine.event_gap_ns);
  }
  uint32_t engine = engine_of(spec);
  if (engine != kNone) {
    if (last_on_engine_[engine] != kNone) {
      bind(Bound::kEngine, last_on_engine_[engine], machine.dispatch_gap_ns);
    }
    last_on_engine_[engine] = op;
  }
  if (spec.collective == kNone) {
    run.end_ns = run.begin_ns + spec.duration_ns;
    settle(op);
    return;
  }
  std::vector<uint32_t>& arrived = arrived_[spec.collective];
  arrived.push_back(op);
  if (arrived.size() < program_.collective_ranks[spec.collective]) return;
  Ns last = 0;
  for (uint32_t other : arrived) last = std::max(last, out_.ops[other].begin_ns);
  for (uint32_t other : arrived) {
    out_.ops[other].end_ns = last + program_.ops[other].duration_ns;
  }
  std::vector<uint32_t> group = arrived;
  for (uint32_t other : group) settle(other);
}

// The end of an op is known: tell the ops and threads that wait for it.
void Engine::settle(uint32_t op) {
  ops_[op].resolved = true;
  out_.end_ns = std::max(out_.end_ns, out_.ops[op].end_ns);
  if (auto it = op_waiters_.find(op); it != op_waiters_.end()) {
    std::vector<uint32_t> waiters = std::move(it->second);
    op_waiters_.erase(it);
    for (uint32_t thread : waiters) {
      if (--threads_[thread].waiting_ops == 0) end_wait(thread, now_);
    }
  }
  if (auto it = op_dependents_.find(op); it != op_dependents_.end()) {
    std::vector<uint32_t> dependents = std::move(it->second);
    op_dependents_.erase(it);
    for (uint32_t other : dependents) {
      if (--ops_[other].missing == 0) resolve(other);
    }
  }
}

}  // namespace idlescope::simulate
