// Laws that hold for every job: no resource does two things at once, nothing begins before
// its cause, every nanosecond of a device has one label. Checked on random jobs with random
// mixtures of causes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
