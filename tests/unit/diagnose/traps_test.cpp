// Traps that fool summaries of API time, and the rule that defends (analysis.md B9).
#include <gtest/gtest.h>

#include <algorithm>

#include "proto/report.pb.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

using diagnose::analyze;
using diagnose::Diagnosis;

constexpr uint32_t kAutograd = 101;

// num_workers = 0: the batch is made inside next(), all of it on the CPU.
void inline_next(Scene& s, double begin, double end, int64_t batch) {
  s.event(trace::EVENT_LOADER_NEXT, begin, end, {.iterator = 1, .batch = batch});
  s.event(trace::EVENT_WORKER_FETCH, begin, end,
          {.iterator = 1, .batch = batch, .a = 32, .b = 0, .c = -1});
  s.event(trace::EVENT_WORKER_FETCH_CPU, begin, end,
          {.iterator = 1, .batch = batch, .a = ms(end - begin), .b = ms(end - begin), .c = 0});
}

void inline_loader(Scene& s) {
  s.event(trace::EVENT_LOADER_CREATE, 0.001, 0.002, {.iterator = 1, .a = 0, .b = 2, .c = 0});
}

Ns data_ns(const Diagnosis& d) {
  Ns sum = 0;
  for (int l = report::DATA_STARTUP; l <= report::DATA_UNSEEN; ++l) {
    sum += leaf(d, static_cast<report::Leaf>(l));
  }
  return sum;
}

bool abstains(const Diagnosis& d, const std::string& kind) {
  return std::any_of(d.abstentions.begin(), d.abstentions.end(),
                     [&](const auto& a) { return a.missing_kind == kind; });
}

TEST(Traps, HiddenLoaderWaitCostsNothing) {
  Scene s;
  inline_loader(s);
  s.kernel(0.010, 100, s.launch(0.003, 0.006));
  inline_next(s, 1, 90, 1);
  s.kernel(100, 200, s.launch(91, 91.004));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(data_ns(d), 0);
  EXPECT_EQ(leaf(d, report::BUSY_COMPUTE), ms(199.990));
}

TEST(Traps, TwoStreamsThatAlternateLeaveNoGap) {
  Scene s;
  for (int i = 0; i < 20; ++i) {
    s.kernel(1 + i, 2 + i, s.launch(0.1 + 0.01 * i, 0.104 + 0.01 * i), i % 2 == 0 ? 7 : 13);
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::BUSY_COMPUTE), ms(20));
  EXPECT_EQ(device_of(d).window_ns, ms(20));
}

TEST(Traps, UnrelatedCopyDoesNotExplainAGap) {
  Scene s;
  inline_loader(s);
  s.kernel(0.010, 50, s.launch(0.003, 0.006));
  const uint32_t save = s.copy_call(30, 30.005, 1'000'000'000, trace::COPY_D2H);
  s.copy(trace::COPY_D2H, trace::MEMORY_PINNED, 1'000'000'000, 40, 90, save, 13);
  inline_next(s, 45, 120, 1);
  s.kernel(120.02, 150, s.launch(120.01, 120.014));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::BUSY_COPY_EXPOSED), 0);
  EXPECT_EQ(data_ns(d), ms(70));
}

TEST(Traps, AutogradLaunchesButTheMainThreadIsGuilty) {
  Scene s;
  s.kernel(0.010, 1, s.launch(0.003, 0.006));
  inline_loader(s);
  inline_next(s, 0.5, 30, 1);
  s.kernel(30.02, 30.05, s.launch(30.01, 30.012, kAutograd));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(data_ns(d), ms(29));
  ASSERT_FALSE(d.gaps.empty());
  EXPECT_EQ(d.gaps[0].hops, 1u);
  EXPECT_EQ(d.gaps[0].doing, "next()");
}

TEST(Traps, ThreadThatDidNotRunIsBlocked) {
  Scene s;
  s.kernel(0.010, 1, s.launch(0.003, 0.006));
  s.event(trace::EVENT_THREAD_CPU, 0.010, 0.010, {.a = ms(100)});
  s.event(trace::EVENT_THREAD_CPU, 50, 50, {.a = ms(102)});
  s.kernel(50.02, 60, s.launch(50.001, 50.005));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_GT(leaf(d, report::HOST_BLOCKED), ms(48));
}

TEST(Traps, ModuleLoadInsideALaunchIsCompiling) {
  Scene s;
  s.kernel(0.010, 1, s.launch(0.003, 0.006));
  const uint32_t c = s.launch(1, 9);
  s.call(trace::CALL_MODULE_LOAD, "cuLibraryLoadData", 1.5, 8.5);
  s.kernel(9.010, 60, c, 7, "other");
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_GE(leaf(d, report::COMPILE_MODULE), ms(7));
}

// A kernel is built for a new shape: 400 ms of nothing recorded, then its code is loaded.
TEST(Traps, LongHostCodeThatEndsInAModuleLoadBuiltIt) {
  for (const bool loads : {true, false}) {
    Scene s;
    s.kernel(0.010, 1, s.launch(0.003, 0.006));
    s.range("backward", trace::RANGE_BACKWARD, 0.5, 402);
    if (loads) s.call(trace::CALL_MODULE_LOAD, "cuLibraryLoadData", 400, 400.08);
    s.kernel(400.12, 450, s.launch(400.1, 400.105), 7, "other");
    const Diagnosis d = analyze(s.take()).diagnosis;
    EXPECT_EQ(leaf(d, report::COMPILE_MODULE) > ms(390), loads);
    EXPECT_EQ(leaf(d, report::HOST_BACKWARD) > ms(390), !loads);
  }
}

// A queue that a thread of the job fills: the main thread sleeps, then sends what it got.
TEST(Traps, SleepingBeforeTheInputIsSentIsWaitingForData) {
  for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{8}}) {
    Scene s;
    s.kernel(0.010, 1, s.launch(0.003, 0.006));
    s.event(trace::EVENT_THREAD_CPU, 0.010, 0.010, {.a = ms(100)});
    s.event(trace::EVENT_THREAD_CPU, 50, 50, {.a = ms(102)});
    const uint32_t copy = s.copy_call(50.001, 50.2, bytes, trace::COPY_H2D);
    s.copy(trace::COPY_H2D, trace::MEMORY_PAGEABLE, bytes, 50.1, 50.15, copy);
    s.kernel(50.23, 90, s.launch(50.21, 50.215));
    const Diagnosis d = analyze(s.take()).diagnosis;
    const bool input = bytes > 4096;
    EXPECT_EQ(leaf(d, report::DATA_UNSEEN) > ms(48), input);
    EXPECT_EQ(leaf(d, report::HOST_BLOCKED) > ms(48), !input);
  }
}

TEST(Traps, AllocationInTheLoopIsNamed) {
  Scene s;
  s.kernel(0.010, 1, s.launch(0.003, 0.006));
  s.call(trace::CALL_ALLOC_DEVICE, "cudaMalloc", 1.0, 4.0);
  s.kernel(4.020, 60, s.launch(4.010, 4.014));
  EXPECT_EQ(leaf(analyze(s.take()).diagnosis, report::ALLOC_DEVICE), ms(3));
}

TEST(Traps, OwnOverheadIsNotTheJobs) {
  Scene s;
  s.kernel(0.010, 1, s.launch(0.003, 0.006));
  s.overhead(trace::OVERHEAD_BUFFER_FLUSH, 1, 5);
  s.kernel(5.020, 60, s.launch(5.010, 5.014));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::PROFILER), ms(4));
  for (const auto& share : device_of(d).verdict_shares) EXPECT_LT(share.share, 1.0001);
}

TEST(Traps, RecordingCostOfALaunchIsSubtracted) {
  const auto scene = [](int64_t cost) {
    Scene s;
    s.window(-1, 100);
    s.here().windows[0].end.set_per_call_cost_ns(cost);
    for (int i = 0; i < 100; ++i) {
      s.kernel(i * 0.009 + 0.006, i * 0.009 + 0.008, s.launch(i * 0.009, i * 0.009 + 0.004));
    }
    return analyze(s.take()).diagnosis;
  };
  const Diagnosis plain = scene(0);
  const Diagnosis corrected = scene(1000);
  EXPECT_EQ(leaf(plain, report::PROFILER), 0);
  EXPECT_EQ(leaf(corrected, report::PROFILER), 99 * 1000);
  EXPECT_EQ(leaf(corrected, report::LAUNCH_LEAF) + 99 * 1000, leaf(plain, report::LAUNCH_LEAF));
}

// A loop of steps; the host runs `host` ms of Python and the device `device` ms a step.
Scene loop(int steps, double host, double device, int checkpoint_every = 0) {
  Scene s;
  double at = 0;
  double drained = 0;
  for (int i = 0; i < steps; ++i) {
    s.step(at);
    at += host;
    if (checkpoint_every > 0 && i % checkpoint_every == checkpoint_every - 1) {
      s.event(trace::EVENT_CHECKPOINT, at, at + 200, {.a = 1000});
      at += 200;
    }
    const double begin = std::max(drained, at + 0.010);
    s.kernel(begin, begin + device, s.launch(at, at + 0.004));
    drained = begin + device;
    at += 0.1;
    if (at < drained - 2 * device) at = drained - 2 * device;
  }
  s.step(at);
  return s;
}

TEST(Traps, BusyDeviceIsHealthy) {
  const Diagnosis d = analyze(loop(60, 5, 20).take()).diagnosis;
  EXPECT_EQ(d.verdict, report::COMPUTE);
  EXPECT_EQ(d.certainty, report::SURE);
}

TEST(Traps, HostCodeBetweenStepsIsFound) {
  const Diagnosis d = analyze(loop(60, 20, 5).take()).diagnosis;
  EXPECT_EQ(d.verdict, report::HOST);
  EXPECT_NEAR(d.step.mean_ns, 20.1e6, 0.1e6);
  // No loader was recorded: what the host did may be waiting for data, and that is said.
  EXPECT_TRUE(abstains(d, "KIND_LOADER"));
}

TEST(Traps, TooFewStepsGiveNoVerdict) {
  const Diagnosis d = analyze(loop(12, 20, 5).take()).diagnosis;
  EXPECT_EQ(d.verdict, report::CANNOT_TELL);
  EXPECT_EQ(d.reason, diagnose::Reason::kFewSteps);
}

TEST(Traps, RegularStallsHaveAPeriodAndAName) {
  const Diagnosis d = analyze(loop(100, 5, 20, 10).take()).diagnosis;
  ASSERT_FALSE(d.run.stalls.empty());
  EXPECT_EQ(d.run.stalls[0].what, "checkpoint");
  EXPECT_EQ(d.run.stalls[0].period_steps, 10);
  EXPECT_EQ(d.run.stalls[0].count, 10u);
  EXPECT_GT(leaf(d, report::CKPT), ms(1500));
  EXPECT_GT(d.run.mean_step_ns, 1.5 * static_cast<double>(d.run.median_step_ns) * 0.8);
}

TEST(Traps, EvaluationIsNotTraining) {
  Scene s;
  double at = 0;
  s.event(trace::EVENT_LOADER_CREATE, 0, 0.001, {.iterator = 1, .a = 0, .b = 2, .c = 0});
  int64_t batch = 0;
  const auto pass = [&](uint32_t iterator, int n, bool trains) {
    for (int i = 0; i < n; ++i) {
      s.event(trace::EVENT_LOADER_NEXT, at, at + 1, {.iterator = iterator, .batch = batch++});
      s.kernel(at + 1.02, at + 9, s.launch(at + 1.01, at + 1.014));
      at += 10;
      if (trains) s.step(at - 0.5);
    }
  };
  pass(1, 40, true);
  pass(2, 20, false);
  pass(3, 40, true);
  const Diagnosis d = analyze(s.take()).diagnosis;
  ASSERT_EQ(d.phases.size(), 2u);
  EXPECT_EQ(d.phases[1].name, "evaluation");
  EXPECT_EQ(d.phases[1].steps, 20u);
  EXPECT_NEAR(d.step.mean_ns, 10e6, 0.2e6);
}

TEST(Traps, GradientAccumulationIsOneStep) {
  Scene s;
  double at = 0;
  for (int i = 0; i < 120; ++i) {
    s.event(trace::EVENT_LOADER_NEXT, at, at + 0.1, {.iterator = 1, .batch = i});
    s.kernel(at + 0.2, at + 9, s.launch(at + 0.15, at + 0.154));
    at += 10;
    if (i % 4 == 3) s.step(at - 0.5);
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(d.step.micro_steps, 4u);
  EXPECT_NEAR(d.step.mean_ns, 40e6, 1e6);
}

TEST(Traps, WithoutLaunchRecordsTheTimeIsUnknown) {
  Scene s;
  s.kernel(0, 10, s.launch(-1, -0.9));
  for (int i = 1; i < 30; ++i) s.kernel(i * 20, i * 20 + 10, 0);
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_GT(leaf(d, report::UNKNOWN_NOLAUNCH), ms(200));
  EXPECT_EQ(d.verdict, report::CANNOT_TELL);
}

TEST(Traps, QueuedWorkThatWaitsForNothingKnownMeansMissingRecords) {
  Scene s;
  for (int i = 0; i < 60; ++i)
    s.kernel(10 + i * 20, 20 + i * 20, s.launch(0.01 * i, 0.01 * i + 0.004));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(d.verdict, report::CANNOT_TELL);
  EXPECT_EQ(d.reason, diagnose::Reason::kRecordsMissing);
}

TEST(Traps, SmallGridsOnABusyDeviceAreUnderfilled) {
  Scene s;
  double at = 0;
  for (int i = 0; i < 60; ++i) {
    s.step(at * 0.001);
    s.kernel(1 + i * 2.0, 3 + i * 2.0, s.launch(0.01 * i + 0.001, 0.01 * i + 0.005), 7, "scan", 1);
    at += 10;
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(d.verdict, report::UNDERFILLED);
  EXPECT_NEAR(device_of(d).fill, 1.0 / 132, 0.001);
}

TEST(Traps, HostOnlyRecordingSaysSo) {
  Scene s;
  inline_loader(s);
  for (int i = 0; i < 50; ++i) inline_next(s, 1 + i * 10, 9 + i * 10, i);
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(d.verdict, report::CANNOT_TELL);
  EXPECT_EQ(d.reason, diagnose::Reason::kNoDevice);
  EXPECT_NEAR(d.run.loader_wait_share, 0.8, 0.02);
  EXPECT_TRUE(abstains(d, "KIND_KERNEL"));
}

// Rank 1 is 30 ms late in every step; nothing numbers the collectives, and the window of rank 1
// opened three steps later.
TEST(WorkedExamples, UnnumberedCollectivesAreMatchedByWhenTheyEnd) {
  Scene s(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    s.in(rank);
    for (int step = rank == 0 ? 0 : 3; step < 30; ++step) {
      const double at = 50.0 * step;
      const double late = rank == 0 ? 0 : 30;
      s.kernel(at + 1 + late, at + 11 + late, s.launch(at + 0.9 + late, at + 0.91 + late));
      s.kernel(at + 11 + late, at + 45, s.launch(at + 0.92 + late, at + 0.93 + late), 7,
               "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    }
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  ASSERT_EQ(d.ranks.size(), 2u);
  EXPECT_EQ(d.ranks[0].last_share, 0);
  EXPECT_EQ(d.ranks[1].last_share, 1);
}

// 5. Ranks 0-2 wait 32 ms in the collective because rank 3 waited for data.
TEST(WorkedExamples, StragglerIsNamedWithItsCause) {
  Scene s(4);
  for (size_t rank = 0; rank < 4; ++rank) {
    s.in(rank);
    const uint32_t first = s.launch(0.002, 0.006);
    if (rank < 3) {
      s.kernel(0.010, 80, first);
      s.kernel(80, 120, s.launch(1, 1.004), 7, "ncclDevKernel_AllReduce");
    } else {
      inline_loader(s);
      s.kernel(0.010, 50, first);
      inline_next(s, 40, 81.98, 1);
      s.kernel(82, 112, s.launch(81.99, 81.994));
      s.kernel(112, 120, s.launch(82.1, 82.104), 7, "ncclDevKernel_AllReduce");
    }
    s.kernel(120, 150, s.launch(82.2, 82.204));
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  ASSERT_EQ(d.ranks.size(), 4u);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(d.ranks[rank].comm_wait_ns, 32e6, 1);
    EXPECT_NEAR(d.ranks[rank].comm_transfer_ns, 8e6, 1);
    EXPECT_EQ(d.ranks[rank].last_share, 0);
  }
  EXPECT_EQ(d.ranks[3].comm_wait_ns, 0);
  EXPECT_EQ(d.ranks[3].last_share, 1);
  EXPECT_EQ(d.ranks[3].guilty_leaf, report::DATA_CPU);
  // All of the waiting, but for 18 us in which it launched.
  EXPECT_NEAR(d.ranks[3].guilty_ns, 31.98e6, 5e4);
  const auto& waiter = d.devices[0];
  for (const auto& time : waiter.leaves) {
    if (time.leaf == report::COMM_STRAGGLER) {
      EXPECT_EQ(time.total_ns, ms(32));
    }
    if (time.leaf == report::COMM_TRANSFER) {
      EXPECT_EQ(time.total_ns, ms(8));
    }
    EXPECT_NE(time.leaf, report::BUSY_COMM_EXPOSED);
  }
}

// Two ranks that are late by turns: their means are alike, step by step each has its cause.
TEST(Traps, StragglersThatTakeTurnsBothHaveACause) {
  Scene s(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    s.in(rank);
    if (rank == 1) inline_loader(s);
    double t = 0;
    for (int step = 0; step < 24; ++step, t += 100) {
      s.step(t);
      const bool late = step % 2 == static_cast<int>(rank);
      if (!late) {
        s.kernel(t + 0.010, t + 40, s.launch(t + 0.001, t + 0.005));
        s.kernel(t + 40, t + 90, s.launch(t + 1, t + 1.004), 7, "ncclDevKernel_AllReduce");
      } else {
        if (rank == 1) {
          inline_next(s, t + 0.01, t + 41, step);
        } else {
          s.event(trace::EVENT_GC, t + 0.01, t + 41);
        }
        s.kernel(t + 41.01, t + 80, s.launch(t + 41.002, t + 41.006));
        s.kernel(t + 80, t + 90, s.launch(t + 42, t + 42.004), 7, "ncclDevKernel_AllReduce");
      }
    }
    s.step(t);
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  ASSERT_EQ(d.ranks.size(), 2u);
  EXPECT_EQ(d.ranks[0].guilty_leaf, report::HOST_GC);
  EXPECT_EQ(d.ranks[1].guilty_leaf, report::DATA_CPU);
  // About 40 ms in every other step, less steps at the edges.
  EXPECT_NEAR(d.ranks[0].guilty_ns, 18e6, 3e6);
  EXPECT_NEAR(d.ranks[1].guilty_ns, 18e6, 3e6);
}

}  // namespace
}  // namespace idlescope::test
