#include "analysis/simulate/special_scenarios.h"

#include <algorithm>
#include <array>
#include <string>

#include "analysis/simulate/scenario_sets.h"

namespace idlescope::simulate {
namespace {

enum : uint64_t { kMix = 0x600 };

constexpr std::array<const char*, 4> kProfiles = {"clean", "skew", "lossy", "sparse"};

bool in_loader(std::string_view cause) {
  return cause.substr(0, 5) == "data-" || cause == "epoch-restart" || cause == "alloc-lock";
}

// Causes that shape the whole job and do not combine.
bool alone(std::string_view cause) {
  return cause == "launch" || cause.substr(0, 4) == "comm" || cause == "epoch-restart" ||
         cause == "host-blocked";
}

}  // namespace

Scenario mixed_scenario(int causes, bool reporting, uint64_t seed) {
  Draws d(key(seed, kMix));
  Scenario s;
  s.seed = seed;
  s.group = "mix";
  s.profile = kProfiles[static_cast<size_t>(d.uniform(0, 3, 1))];
  // Only those that may occur are drawn from: a new mechanism of the other set changes nothing.
  std::vector<const Mechanism*> eligible;
  for (const Mechanism& m : mechanisms()) {
    if (!alone(m.cause) && (reporting || !m.reporting)) eligible.push_back(&m);
  }
  std::vector<report::Verdict> verdicts;
  bool loader = false;
  for (uint64_t attempt = 0; static_cast<int>(s.causes.size()) < causes && attempt < 200;
       ++attempt) {
    auto last = static_cast<int64_t>(eligible.size()) - 1;
    const Mechanism& m = *eligible[static_cast<size_t>(d.uniform(0, last, 2, attempt))];
    bool taken = std::find(verdicts.begin(), verdicts.end(), m.verdict) != verdicts.end();
    if (taken || (in_loader(m.cause) && loader)) continue;
    loader = loader || in_loader(m.cause);
    verdicts.push_back(m.verdict);
    double share = static_cast<double>(d.uniform(10, 35, 3, attempt)) / 100;
    s.causes.push_back({m.cause, m.name, share, 0});
  }
  // "sync" draws the plainest job: the others run in it too.
  s.base = draw_job(seed, "sync");
  s.name = "mix";
  for (const InjectedCause& cause : s.causes) s.name += "." + cause.id;
  s.name += "." + s.profile + "." + std::to_string(seed);
  finish_scenario(&s);
  return s;
}

const std::vector<Trap>& traps() {
  static const std::vector<Trap> all = {
      {"loader-just-in-time", false,
       [](LoopSpec* s, Ns compute) {
         s->loader.cpu_ns = compute * s->loader.workers * 82 / 100;
         s->loader.read_ns = s->loader.collate_ns = 0;
         s->loader.cv_permille = 40;
       }},
      {"item-behind-backlog", false,
       [](LoopSpec* s, Ns) {
         s->sync.kind = SyncKind::kItem;
         s->sync.at_end = true;
         s->sync.every_steps = 1;
         s->host.python_ns = 20000;
         s->loader.hand_out_ns = 20000;
       }},
      {"pageable-behind-backlog", false,
       [](LoopSpec* s, Ns) {
         s->loader.pin = false;
         s->loader.hand_out_ns = 20000;
         s->loader.unpickle_ns = 20000;
         s->host.python_ns = 20000;
         s->transfer.path = CopyPath::kPageable;
         s->transfer.bytes = 128 << 10;
       }},
      {"launch-queue-full", false,
       [](LoopSpec* s, Ns) {
         s->sync.kind = SyncKind::kNoSync;
         s->model.dispatch_ns = 1500;
         s->model.layers = 12;
         s->host.python_ns = 20000;
       }},
      {"two-streams", false, [](LoopSpec* s, Ns) { s->model.two_streams = true; }},
      {"slow-python-hidden", false,
       [](LoopSpec* s, Ns compute) { s->host.python_ns = compute * 6 / 10; }},
      {"evaluation-between", true,
       [](LoopSpec* s, Ns) {
         s->evaluation.every = 20;
         s->evaluation.batches = 5;
       }},
      {"kernels-slow-down", true, [](LoopSpec* s, Ns) { s->model.drift_permille = 120; }},
      {"malloc-hidden", true,
       [](LoopSpec* s, Ns compute) { s->alloc.device_ns = compute * 3 / 10; }},
      {"checkpoint-in-background", true,
       [](LoopSpec* s, Ns compute) {
         s->checkpoint.every = 15;
         s->checkpoint.total_ns = compute * 3;
         s->checkpoint.in_background = true;
       }},
      {"pin-thread-busy", true,
       [](LoopSpec* s, Ns compute) { s->loader.pin_ns = compute * 6 / 10; }},
      {"small-grids", false, [](LoopSpec* s, Ns) { s->model.grid = 14; }},
  };
  return all;
}

Scenario trap_scenario(const Trap& trap, std::string_view profile, uint64_t seed) {
  Scenario s;
  s.seed = seed;
  s.group = "trap";
  s.trap = true;
  s.profile = std::string(profile);
  s.base = draw_job(seed, "sync");
  s.base.model.kernel_ns = std::max<Ns>(s.base.model.kernel_ns, 150000);
  s.base.loader.pin = true;
  if (s.base.transfer.path == CopyPath::kPageable) s.base.transfer.path = CopyPath::kPinnedAsync;
  s.base.transfer.bytes = std::min<uint64_t>(s.base.transfer.bytes, 2 << 20);
  Ns compute = 3 * s.base.model.layers * s.base.model.kernels_per_layer * s.base.model.kernel_ns;
  trap.apply(&s.base, compute);
  s.name = std::string("trap.") + trap.name + "." + s.profile + "." + std::to_string(seed);
  finish_scenario(&s);
  return s;
}

const std::vector<RemovedEvidence>& removed_evidence() {
  using report::Leaf;
  static const std::vector<RemovedEvidence> all = {
      {"no-worker-events",
       false,
       "data-storage",
       "cold-read",
       {trace::KIND_LOADER_WORKER, trace::KIND_COUNTER},
       {report::DATA_STORAGE, report::DATA_REMOTE, report::DATA_CPU, report::DATA_CONTENDED,
        report::DATA_COLLATE}},
      {"no-counters",
       false,
       "data-cpu",
       "decode",
       {trace::KIND_COUNTER},
       {report::DATA_STORAGE, report::DATA_REMOTE, report::DATA_CPU, report::DATA_CONTENDED}},
      {"no-loader",
       false,
       "data-cpu",
       "decode",
       {trace::KIND_LOADER, trace::KIND_LOADER_WORKER, trace::KIND_COUNTER},
       {report::DATA_STORAGE, report::DATA_CPU, report::DATA_FETCH, report::DATA_COLLATE}},
      {"no-sync-calls",
       true,
       "sync",
       "device-synchronize",
       {trace::KIND_CALL_SYNC},
       {report::SYNC_SCALAR, report::SYNC_EXPLICIT, report::SYNC_EVENT}},
      {"no-item-calls",
       false,
       "sync",
       "item-per-step",
       {trace::KIND_CALL_SYNC, trace::KIND_CALL_COPY, trace::KIND_MEMCPY},
       {report::SYNC_SCALAR, report::SYNC_EXPLICIT, report::SYNC_EVENT}},
      {"no-allocation-calls",
       false,
       "alloc-device",
       "malloc-per-step",
       {trace::KIND_CALL_ALLOC},
       {report::ALLOC_DEVICE, report::ALLOC_PINNED}},
      {"no-checkpoint-range",
       false,
       "checkpoint",
       "save-every-20",
       {trace::KIND_PYTHON_RANGE},
       {report::CKPT}},
      {"no-launch-calls",
       false,
       "launch",
       "tiny-kernels",
       {trace::KIND_CALL_LAUNCH, trace::KIND_CALL_COPY, trace::KIND_CALL_GRAPH},
       {report::LAUNCH_LEAF, report::HOST_PYTHON}},
      {"no-kernels",
       true,
       "host",
       "python-between-steps",
       {trace::KIND_KERNEL, trace::KIND_MEMCPY, trace::KIND_MEMSET},
       {report::HOST_PYTHON, report::LAUNCH_LEAF}},
      {"no-compile-range",
       true,
       "compile",
       "recompile-by-shape",
       {trace::KIND_PYTHON_RANGE, trace::KIND_CALL_MODULE},
       {report::COMPILE_JIT, report::COMPILE_MODULE}},
      {"one-rank",
       false,
       "comm-straggler",
       "slow-host-on-one-rank",
       {},
       {report::COMM_STRAGGLER, report::COMM_TRANSFER},
       true},
      {"no-worker-counters-remote",
       true,
       "data-remote",
       "pipe",
       {trace::KIND_COUNTER},
       {report::DATA_STORAGE, report::DATA_REMOTE, report::DATA_CPU, report::DATA_CONTENDED}},
  };
  return all;
}

Scenario removed_scenario(const RemovedEvidence& removed, uint64_t seed) {
  Scenario s = single_scenario(removed.cause, removed.mechanism, 0.35, "clean", seed);
  s.group = "removed";
  s.view.removed = removed.kinds;
  s.abstain_leaves = removed.leaves;
  if (removed.one_rank) s.view.only_rank = 0;
  s.name = std::string("removed.") + removed.name + "." + std::to_string(seed);
  return s;
}

}  // namespace idlescope::simulate
