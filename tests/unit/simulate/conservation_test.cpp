// Laws that hold for every job: no resource does two things at once, nothing begins before
// its cause, every nanosecond of a device has one label. Checked on random jobs with random
// mixtures of causes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "analysis/simulate/device_labels.h"
#include "analysis/simulate/loop_program.h"
#include "analysis/simulate/scenario_sets.h"
#include "analysis/simulate/special_scenarios.h"

namespace idlescope::simulate {
namespace {

struct Span {
  Ns begin_ns;
  Ns end_ns;
};

void expect_disjoint(std::vector<Span> spans, const char* what) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  for (size_t i = 1; i < spans.size(); ++i)
    ASSERT_LE(spans[i - 1].end_ns, spans[i].begin_ns) << what;
}

void check_threads(const Program& program, const Execution& run) {
  for (uint32_t t = 0; t < program.threads.size(); ++t) {
    const std::vector<Segment>& log = run.threads[t];
    for (size_t i = 0; i < log.size(); ++i) {
      ASSERT_LT(log[i].begin_ns, log[i].end_ns);
      if (i == 0) continue;
      ASSERT_LE(log[i - 1].end_ns, log[i].begin_ns);
      if (program.threads[t].role != Role::kPin) {
        ASSERT_EQ(log[i - 1].end_ns, log[i].begin_ns) << "a hole in a thread";
      }
    }
    if (program.threads[t].role == Role::kPin) continue;
    for (const Segment& s : log) {
      const Instruction& in = program.threads[t].code[s.instruction];
      // Work takes at least as long as it is; sharing only stretches it.
      if (in.what == Do::kRun || in.what == Do::kIo) {
        ASSERT_GE(s.end_ns - s.begin_ns, in.ns);
      }
      if (in.what == Do::kAwait) {
        ASSERT_GE(s.end_ns, run.flag_ns[in.arg]);
      }
    }
  }
}

void check_ops(const Program& program, const Execution& run) {
  std::map<std::pair<uint16_t, uint16_t>, std::vector<Span>> streams;
  std::map<std::pair<uint16_t, int>, std::vector<Span>> engines;
  for (uint32_t op = 0; op < program.ops.size(); ++op) {
    const OpSpec& spec = program.ops[op];
    const OpRun& r = run.ops[op];
    ASSERT_GE(r.begin_ns, 0) << "op " << op << " never ran";
    const Segment& call = run.threads[r.thread][r.segment];
    ASSERT_GT(r.begin_ns, call.begin_ns) << "op before its launch";
    if (spec.collective == kNone) {
      ASSERT_EQ(r.end_ns - r.begin_ns, spec.duration_ns);
    } else {
      ASSERT_GE(r.end_ns - r.begin_ns, spec.duration_ns);
    }
    for (uint32_t i = 0; i < spec.dep_count; ++i) {
      ASSERT_GE(r.begin_ns, run.ops[program.deps[spec.first_dep + i]].end_ns);
    }
    streams[{spec.rank, spec.stream}].push_back({r.begin_ns, r.end_ns});
    bool host_copy = spec.kind == trace::OP_MEMCPY && spec.copy_kind != trace::COPY_D2D;
    if (host_copy) engines[{spec.rank, spec.copy_kind}].push_back({r.begin_ns, r.end_ns});
  }
  for (auto& [name, spans] : streams) expect_disjoint(spans, "stream");
  for (auto& [name, spans] : engines) expect_disjoint(spans, "copy engine");
}

void check_loader(const Program& program, const Execution& run) {
  for (const BatchSpec& b : program.batches) {
    if (b.ready_flag == kNone || run.flag_ns[b.ready_flag] < 0) continue;
    ASSERT_LE(run.flag_ns[b.issued_flag], run.flag_ns[b.put_flag]);
    ASSERT_LE(run.flag_ns[b.put_flag], run.flag_ns[b.sent_flag]);
    ASSERT_LE(run.flag_ns[b.sent_flag], run.flag_ns[b.ready_flag]);
  }
}

void check_labels(const Program& program, const Execution& run) {
  for (uint16_t rank = 0; rank < program.ranks; ++rank) {
    std::vector<LabelledSpan> spans = label_device(program, run, rank);
    ASSERT_FALSE(spans.empty());
    Ns busy = 0;
    for (size_t i = 0; i < spans.size(); ++i) {
      ASSERT_LT(spans[i].begin_ns, spans[i].end_ns);
      ASSERT_NE(spans[i].leaf, report::LEAF_UNSPECIFIED);
      if (i > 0) {
        ASSERT_EQ(spans[i - 1].end_ns, spans[i].begin_ns) << "device time without a label";
      }
      if (spans[i].leaf == report::BUSY_COMPUTE) busy += spans[i].end_ns - spans[i].begin_ns;
    }
    // Busy time is the union of the kernels, counted independently.
    std::vector<Span> kernels;
    for (uint32_t op = 0; op < program.ops.size(); ++op) {
      const OpSpec& spec = program.ops[op];
      if (spec.rank != rank || spec.kind != trace::OP_KERNEL || spec.communication) continue;
      kernels.push_back({run.ops[op].begin_ns, run.ops[op].end_ns});
    }
    std::sort(kernels.begin(), kernels.end(),
              [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
    Ns sum = 0;
    Ns at = 0;
    for (const Span& k : kernels) {
      sum += std::max<Ns>(0, k.end_ns - std::max(at, k.begin_ns));
      at = std::max(at, k.end_ns);
    }
    ASSERT_EQ(busy, sum);
  }
}

void check(const LoopSpec& spec) {
  Program program = build_loop(spec);
  Execution run = execute(program);
  ASSERT_TRUE(run.complete) << "the job never ends";
  check_threads(program, run);
  check_ops(program, run);
  check_loader(program, run);
  check_labels(program, run);
}

TEST(Conservation, HoldsForEveryMechanism) {
  for (const Mechanism& m : mechanisms()) {
    SCOPED_TRACE(std::string(m.cause) + " " + m.name);
    Scenario s = single_scenario(m.cause, m.name, 0.2, "skew", 17);
    s.causes[0].amount_ns = 4000000;
    s.base.steps = 30;
    ASSERT_NO_FATAL_FAILURE(check(job(s)));
    ASSERT_NO_FATAL_FAILURE(check(job(s, 0)));
  }
}

TEST(Conservation, HoldsForRandomMixtures) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Scenario s = mixed_scenario(static_cast<int>(2 + seed % 3), true, seed);
    SCOPED_TRACE(s.name);
    Draws d(seed);
    for (size_t i = 0; i < s.causes.size(); ++i) {
      s.causes[i].amount_ns = d.uniform(50000, 9000000, 99, i);
    }
    s.base.steps = static_cast<int>(d.uniform(12, 26, 98));
    s.base.warmup = static_cast<int>(d.uniform(1, 6, 97));
    if (d.chance(150, 96)) s.base.ranks = 3;
    s.base.loader.batches_per_epoch = d.chance(300, 95) ? 9 : 0;
    s.base.loader.persistent = d.chance(500, 94);
    ASSERT_NO_FATAL_FAILURE(check(job(s)));
  }
}

// A job in which everything is drawn, within what the types allow: shapes that no scenario has.
LoopSpec random_job(uint64_t seed) {
  Draws d(key(seed, 0xF022));
  uint64_t what = 0;
  auto pick = [&](int64_t low, int64_t high) { return d.uniform(low, high, ++what); };
  auto number = [&](int64_t low, int64_t high) { return static_cast<int>(pick(low, high)); };
  auto often = [&](int64_t permille) { return d.chance(permille, ++what); };
  auto sometimes = [&](Ns high) { return often(300) ? pick(1, high) : Ns{0}; };
  LoopSpec s;
  s.seed = seed;
  s.steps = number(4, 16);
  s.warmup = number(1, 3);
  s.micro_steps = number(1, 4);
  s.gan = often(150);
  s.ranks = static_cast<uint16_t>(often(250) ? pick(2, 4) : 1);
  s.worker_cores = pick(1, 8);
  s.storage_streams = pick(0, 3);

  ModelSpec& m = s.model;
  m.layers = number(1, 8);
  m.kernels_per_layer = number(1, 5);
  m.kernel_ns = pick(900, 300000);
  m.kernel_sigma = pick(0, 1500);
  m.dispatch_ns = pick(100, 20000);
  m.extra_dispatch_ns = sometimes(3000000);
  m.optimizer_kernels = number(1, 40);
  m.optimizer_kernel_ns = pick(900, 100000);
  m.extra_optimizer_ns = sometimes(3000000);
  m.autograd_thread = often(700);
  m.graph = often(200);
  m.two_streams = !m.graph && often(200);
  m.grid = static_cast<uint32_t>(pick(1, 4000));
  m.drift_permille = often(200) ? pick(1, 500) : 0;

  LoaderSpec& l = s.loader;
  l.on = often(900);
  l.workers = number(0, 5);
  l.prefetch = number(1, 4);
  l.pin = often(600);
  l.persistent = often(500);
  l.active_workers = l.workers > 0 && often(200) ? number(1, l.workers) : 0;
  l.batches_per_epoch = often(300) ? number(1, 9) : 0;
  l.samples = number(1, 512);
  l.read_ns = sometimes(5000000);
  l.read = static_cast<Read>(pick(0, 2));
  l.cpu_ns = sometimes(5000000);
  l.gil_ns = sometimes(2000000);
  l.collate_ns = sometimes(3000000);
  l.pickle_ns = sometimes(3000000);
  l.unpickle_ns = pick(0, 500000);
  l.pipe_ns = pick(0, 500000);
  l.pin_ns = sometimes(2000000);
  l.pin_allocate_ns = sometimes(2000000);
  l.hand_out_ns = pick(0, 200000);
  l.cv_permille = pick(0, 800);
  l.slow_every = often(200) ? number(1, 7) : 0;
  l.slow_factor = number(1, 20);
  l.worker_start_ns = sometimes(20000000);
  l.create_ns = pick(0, 4000000);

  s.transfer.path = static_cast<CopyPath>(pick(0, 4));
  s.transfer.bytes = static_cast<uint64_t>(pick(1, 8 << 20));
  s.transfer.small_copies = often(200) ? number(1, 12) : 0;
  s.transfer.small_bytes = static_cast<uint64_t>(pick(1, 1 << 18));
  s.sync.kind = static_cast<SyncKind>(pick(0, 3));
  s.sync.per_layers = often(300) ? number(1, 4) : 0;
  s.sync.at_end = often(500);
  s.sync.every_steps = number(1, 5);

  HostSpec& h = s.host;
  h.python_ns = pick(0, 1000000);
  h.forward_ns = sometimes(3000000);
  h.layers_ns = sometimes(3000000);
  h.backward_ns = sometimes(3000000);
  h.optimizer_ns = sometimes(3000000);
  h.logging_ns = sometimes(3000000);
  h.logging_every = number(1, 5);
  h.gc_ns = sometimes(3000000);
  h.gc_every = number(1, 5);
  h.starved_ns = sometimes(8000000);
  if (often(150)) {
    h.gil_hold_ns = pick(1000, 500000);
    h.gil_every_ns = pick(50000, 500000);
  }
  s.alloc.device_ns = sometimes(3000000);
  s.alloc.empty_cache = often(500);
  s.alloc.calls = number(1, 8);
  s.alloc.pinned_ns = sometimes(2000000);
  if (often(200))
    s.compile = {pick(1, 5000000), number(1, 4),     pick(1, 3000000),
                 number(0, 4),     pick(1, 3000000), number(0, 4)};
  if (often(200)) s.checkpoint = {number(1, 6), pick(1000, 20000000), often(500)};
  s.comm.buckets = number(1, 5);
  s.comm.transfer_ns = pick(1000, 2000000);
  if (s.ranks > 1 && often(500)) {
    s.comm.straggler_rank = number(0, s.ranks - 1);
    s.comm.straggler_host_ns = sometimes(5000000);
    s.comm.straggler_cpu_ns = sometimes(5000000);
    s.comm.straggler_kernels_permille = often(300) ? pick(1, 1000) : 0;
  }
  if (often(200)) s.evaluation = {number(1, 5), number(1, 4)};
  if (often(700)) s.windows[0] = {number(0, 2), number(2, s.steps - 1), often(500)};
  return s;
}

// IDLESCOPE_RANDOM_MODELS: how many; more than a test run has time for.
TEST(Conservation, HoldsForJobsInWhichEverythingIsRandom) {
  const char* wanted = std::getenv("IDLESCOPE_RANDOM_MODELS");
  uint64_t first = 1;
  uint64_t models = 300;
  if (wanted != nullptr) {  // N or FIRST:N
    std::string text = wanted;
    size_t colon = text.find(':');
    if (colon != std::string::npos) first = std::stoull(text.substr(0, colon));
    models = std::stoull(text.substr(colon == std::string::npos ? 0 : colon + 1));
  }
  for (uint64_t seed = first; seed < first + models; ++seed) {
    SCOPED_TRACE("model " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(check(random_job(seed)));
  }
}

TEST(Conservation, HoldsForTraps) {
  for (const Trap& trap : traps()) {
    SCOPED_TRACE(trap.name);
    Scenario s = trap_scenario(trap, "clean", 23);
    s.base.steps = 30;
    ASSERT_NO_FATAL_FAILURE(check(job(s)));
  }
}

}  // namespace
}  // namespace idlescope::simulate
