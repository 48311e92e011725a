// What the report says of evaluation, collectives and copies beside the verdict.
#include <gtest/gtest.h>

#include "analysis/diagnose/collectives.h"
#include "analysis/diagnose/phases.h"
#include "proto/report.pb.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

using diagnose::analyze;
using diagnose::Diagnosis;

// Training is busy; evaluation, every ten steps, waits for its batches.
Scene job_with_evaluation(bool evaluates) {
  Scene s;
  double at = 0;
  uint32_t iterators = 1;
  for (int step = 0; step < 60; ++step) {
    s.event(trace::EVENT_LOADER_NEXT, at, at + 0.01, {.iterator = 1, .batch = step});
    for (int k = 0; k < 4; ++k) {
      const uint32_t c = s.launch(at + 0.02 + k * 0.01, at + 0.025 + k * 0.01);
      s.kernel(at + 0.03 + k * 2.4, at + 0.03 + k * 2.4 + 2.4, c, 7, k < 2 ? "fwd" : "bwd");
    }
    s.kernel(at + 9.63, at + 9.99, s.launch(at + 0.07, at + 0.075), 7,
             "multi_tensor_apply_kernel<AdamFunctor>");
    at += 10;
    if (!evaluates || step % 10 != 9) continue;
    const uint32_t iterator = ++iterators;
    s.event(trace::EVENT_LOADER_CREATE, at, at, {.iterator = iterator, .a = 2, .b = 2, .c = 0});
    for (int b = 0; b < 5; ++b) {
      s.event(trace::EVENT_LOADER_NEXT, at, at + 6, {.iterator = iterator, .batch = b});
      s.kernel(at + 6.03, at + 8, s.launch(at + 6.02, at + 6.025), 7, "fwd");
      at += 8;
    }
    s.event(trace::EVENT_LOADER_END, at, at + 0.1, {.iterator = iterator});
    at += 0.1;
  }
  return s;
}

TEST(Phases, EvaluationHasNumbersOfItsOwn) {
  Scene s = job_with_evaluation(true);
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(d.verdict, report::COMPUTE);
  ASSERT_EQ(d.phases.size(), 2u);
  const diagnose::Phase& train = d.phases[0];
  const diagnose::Phase& evaluation = d.phases[1];
  EXPECT_EQ(train.name, "train");
  EXPECT_GT(train.busy_share, 0.95);
  EXPECT_EQ(train.window_ns, device_of(d).window_ns);
  EXPECT_EQ(evaluation.name, "evaluation");
  EXPECT_EQ(evaluation.steps, 30u);
  EXPECT_NEAR(static_cast<double>(evaluation.mean_step_ns), 8e6, 0.1e6);
  EXPECT_NEAR(evaluation.busy_share, 0.25, 0.02);
  ASSERT_FALSE(evaluation.verdict_shares.empty());
  EXPECT_EQ(evaluation.verdict_shares.front().verdict, report::DATA);
  EXPECT_NEAR(evaluation.verdict_shares.front().share, 0.75, 0.02);
  Ns sum = 0;
  for (const diagnose::LeafTime& leaf : evaluation.leaves) sum += leaf.total_ns;
  EXPECT_EQ(sum, evaluation.window_ns);
}

TEST(Phases, AJobWithoutEvaluationHasOne) {
  Scene s = job_with_evaluation(false);
  const Diagnosis d = analyze(s.take()).diagnosis;
  ASSERT_EQ(d.phases.size(), 1u);
  EXPECT_EQ(d.phases[0].steps, 59u);
}

TEST(Collectives, BusBandwidthIsThatOfNcclTests) {
  // doc/PERFORMANCE.md of nccl-tests: 2(n-1)/n, (n-1)/n, 1.
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("AllReduce", 8), 1.75);
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("allreduce_coalesced", 2), 1);
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("reduce_scatter_tensor_coalesced", 4), 0.75);
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("_allgather_base", 4), 0.75);
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("all_to_all", 4), 0.75);
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("broadcast", 4), 1);
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("AllReduce", 1), 0);
  EXPECT_DOUBLE_EQ(diagnose::bus_factor("barrier", 4), 0);
}

// Rank 0 arrives 4 ms before rank 1; the transfer itself takes 2 ms.
TEST(Collectives, WaitingIsLeftOutWhereAllRanksAreKnown) {
  for (const bool both : {true, false}) {
    Scene s(both ? 2 : 1);
    if (!both) {
      s.here().header.mutable_process()->set_has_rank(true);
      s.here().header.mutable_process()->set_world_size(2);
    }
    for (size_t rank = 0; rank < (both ? 2u : 1u); ++rank) {
      s.in(rank);
      for (int step = 0; step < 40; ++step) {
        const double at = step * 20.0;
        s.step(at);
        s.kernel(at + 1, at + 10, s.launch(at, at + 0.01));
        const uint32_t c = s.launch(at + 0.1, at + 0.11);
        s.kernel(at + 10 + (rank == 0 ? 0 : 4), at + 16, c, 9, "ncclDevKernel_AllReduce");
        s.kernel(at + 16, at + 19, s.launch(at + 0.2, at + 0.21));
        read::Collective one;
        one.communicator = 5;
        one.sequence = static_cast<uint64_t>(step);
        one.name = s.recording().strings.add("AllReduce");
        one.bytes = 100'000'000;
        one.ranks = 2;
        one.correlation = c;
        one.window = read::kNone;
        s.here().collectives.push_back(one);
      }
    }
    const Diagnosis d = analyze(s.take()).diagnosis;
    ASSERT_EQ(d.collectives.size(), 1u);
    const diagnose::CollectiveSummary& sum = d.collectives[0];
    EXPECT_EQ(sum.ranks, 2u);
    EXPECT_EQ(sum.one_rank, !both);
    EXPECT_EQ(sum.bytes, sum.count * 100'000'000);
    const double seconds = both ? 0.002 : 0.006;
    EXPECT_NEAR(sum.alg_gb_per_s, 0.1 / seconds, 0.01);
    EXPECT_NEAR(sum.bus_gb_per_s, 0.1 / seconds, 0.01);  // 2 (n - 1) / n = 1
  }
}

// B8-4: the copy runs 24 ms without compute; that the call is charged for the wait is another
// question.
TEST(Copies, ExposedTimeIsThatWithoutCompute) {
  Scene s;
  for (int i = 0; i < 30; ++i) {
    const double at = i * 100.0;
    s.step(at + 19);
    const uint32_t c = s.copy_call(at + 20, at + 74.12, 150'000'000, trace::COPY_H2D);
    s.copy(trace::COPY_H2D, trace::MEMORY_PAGEABLE, 150'000'000, at + 40, at + 74.1, c, 9);
    s.kernel(at + 74.5, at + 100 + 50, s.launch(at + 74.48, at + 74.49));
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  ASSERT_EQ(d.copies.size(), 1u);
  const double n = static_cast<double>(d.copies[0].count);
  EXPECT_NEAR(static_cast<double>(d.copies[0].exposed_ns) / n, 24.1e6, 0.9e6);
}

// The recorder's sums of recorded steps hold one checkpoint.
TEST(Slowdown, ARareStallIsNotTheRecorders) {
  for (const bool stalled : {false, true}) {
    Scene s;
    double at = 0;
    // Recorded steps take 3 % longer.
    const double first = 30 * 10.0, last = first + 30 * 10.3 + (stalled ? 900 : 0);
    s.window(first - 1, last + 1);
    for (int step = 0; step < 90; ++step) {
      s.step(at);
      s.kernel(at + 1, at + 9, s.launch(at, at + 0.01));
      at += 30 <= step && step < 60 ? 10.3 : 10;
      if (stalled && step == 45) {
        s.event(trace::EVENT_CHECKPOINT, at, at + 900);
        at += 900;
      }
    }
    trace::WindowEnd& end = s.here().windows[0].end;
    end.set_inside_steps(30);
    end.set_plain_steps(30);
    end.set_inside_step_ns(stalled ? 40'000'000 : 10'300'000);
    end.set_plain_step_ns(10'000'000);
    const Diagnosis d = analyze(s.take()).diagnosis;
    EXPECT_NEAR(d.step.slowdown, 1.03, 0.001);
  }
}

}  // namespace
}  // namespace idlescope::test
