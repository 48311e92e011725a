#include "analysis/simulate/scenario.h"

#include <algorithm>

#include "analysis/simulate/loop_program.h"

namespace idlescope::simulate {
namespace {

constexpr int kTuneSteps = 46;
constexpr int kTuneRounds = 11;

Ns step_of(const LoopSpec& spec) {
  Program program = build_loop(spec);
  return mean_step(program, execute(program));
}

}  // namespace

LoopSpec job(const Scenario& scenario, uint32_t without) {
  LoopSpec spec = scenario.base;
  for (uint32_t i = 0; i < scenario.causes.size(); ++i) {
    const InjectedCause& cause = scenario.causes[i];
    const Mechanism* m = find_mechanism(cause.id, cause.mechanism);
    if (m != nullptr) m->apply(&spec, cause.amount_ns, i == without);
  }
  return spec;
}

Ns mean_step(const Program& program, const Execution& run) {
  Ns first = -1;
  Ns last = -1;
  int64_t steps = 0;
  uint32_t number = 0;
  for (const StepMark& mark : program.steps) {
    if (mark.rank != 0 || !mark.macro) continue;
    Ns end = run.mark_end_ns[mark.mark];
    if (mark.last_op != kNone) end = std::max(end, run.ops[mark.last_op].end_ns);
    if (number++ + 1 < program.first_steady_step) continue;
    if (first < 0) {
      first = end;
    } else {
      last = end;
      ++steps;
    }
  }
  return steps == 0 ? 0 : (last - first) / steps;
}

// Bisection on the strength: the share of the step that removing the cause saves grows with it.
void tune(Scenario* scenario) {
  for (uint32_t i = 0; i < scenario->causes.size(); ++i) {
    InjectedCause& cause = scenario->causes[i];
    if (cause.target_share <= 0) continue;
    Scenario alone = *scenario;
    alone.causes = {cause};
    alone.base.steps = std::min(scenario->base.steps, kTuneSteps);
    alone.base.windows = {};
    Ns healthy = step_of(job(alone, 0));
    Ns low = 0;
    Ns high = cause.id == "sync" ? healthy * 19 / 20 : healthy * 5;
    for (int round = 0; round < kTuneRounds; ++round) {
      Ns middle = low + (high - low) / 2;
      alone.causes[0].amount_ns = middle;
      Ns with = step_of(job(alone));
      Ns without = step_of(job(alone, 0));
      double share = with > 0 ? static_cast<double>(with - without) / static_cast<double>(with) : 0;
      (share < cause.target_share ? low : high) = middle;
    }
    cause.amount_ns = high;
  }
}

std::vector<Fix> fixes(const LoopSpec& spec) {
  std::vector<Fix> out;
  auto add = [&](const char* id, std::vector<std::pair<std::string, std::string>> parameters,
                 LoopSpec changed) {
    out.push_back({id, std::move(parameters), std::move(changed)});
  };
  LoopSpec s = spec;
  if (spec.loader.on && spec.loader.active_workers == 0) {
    for (int workers : {1, 2, 4, 8, 12}) {
      if (workers == spec.loader.workers) continue;
      s = spec;
      s.loader.workers = workers;
      add("num-workers", {{"num_workers", std::to_string(workers)}}, s);
    }
  }
  if (spec.loader.on && spec.loader.workers > 0) {
    s = spec;
    s.loader.prefetch = 2 * spec.loader.prefetch;
    add("prefetch-factor", {{"prefetch_factor", std::to_string(s.loader.prefetch)}}, s);
  }
  if (spec.loader.workers > 0 && !spec.loader.persistent) {
    s = spec;
    s.loader.persistent = true;
    add("persistent-workers", {}, s);
  }
  if (spec.transfer.path == CopyPath::kPageable ||
      spec.transfer.path == CopyPath::kPinnedBlocking) {
    s = spec;
    s.transfer.path = CopyPath::kPinnedAsync;
    if (spec.transfer.path == CopyPath::kPageable) {
      s.loader.pin_ns += copy_ns(spec.transfer.bytes, Machine{}.memcpy_mb_s, 0);
    }
    add("pin-memory", {}, s);
    s.transfer.path = CopyPath::kPrefetched;
    add("gpu-prefetch", {}, s);
  }
  if (spec.sync.kind != SyncKind::kNoSync) {
    s = spec;
    s.sync.kind = SyncKind::kNoSync;
    add("remove-sync", {}, s);
  }
  bool capturable =
      spec.sync.per_layers == 0 && spec.alloc.device_ns == 0 && spec.compile.jit_every == 0;
  if (!spec.model.graph && capturable && spec.ranks == 1 && spec.micro_steps == 1 && !spec.gan) {
    s = spec;
    s.model.graph = true;
    add("cuda-graph", {}, s);
  }
  if (spec.model.optimizer_kernels > 16) {
    s = spec;
    s.model.optimizer_kernels = 4;
    s.model.optimizer_kernel_ns = spec.model.optimizer_kernel_ns * spec.model.optimizer_kernels / 8;
    s.model.extra_optimizer_ns = 0;
    add("fused-optimizer", {}, s);
  }
  if (spec.checkpoint.every > 0 && !spec.checkpoint.in_background) {
    s = spec;
    s.checkpoint.every = 0;
    add("async-checkpoint", {}, s);
  }
  if (spec.alloc.empty_cache && spec.alloc.device_ns > 0) {
    s = spec;
    s.alloc.device_ns = 0;
    add("no-empty-cache", {}, s);
  }
  if (spec.alloc.pinned_ns > 0 || spec.loader.pin_allocate_ns > 0) {
    s = spec;
    s.alloc.pinned_ns = s.loader.pin_allocate_ns = 0;
    add("alloc-pinned", {}, s);
  }
  if (spec.compile.jit_every > 0) {
    s = spec;
    s.compile.jit_every = 0;
    add("fixed-shapes", {}, s);
  }
  if (spec.host.gc_ns > 0) {
    s = spec;
    s.host.gc_ns = 0;
    add("gc", {}, s);
  }
  if (spec.host.logging_ns > 0) {
    s = spec;
    s.host.logging_every = 10 * spec.host.logging_every;
    add("log-less-often", {}, s);
  }
  if (spec.ranks > 1) {
    if (spec.comm.straggler_rank >= 0) {
      s = spec;
      s.comm.straggler_rank = -1;
      add("no-straggler", {}, s);
    }
    s = spec;
    s.comm.buckets = 4 * spec.comm.buckets;
    s.comm.transfer_ns = spec.comm.transfer_ns / 4;
    add("comm-buckets", {{"buckets", std::to_string(s.comm.buckets)}}, s);
  }
  return out;
}

}  // namespace idlescope::simulate
