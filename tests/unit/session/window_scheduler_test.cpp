#include "profiler/session/window_scheduler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/session/training_job.h"

namespace idlescope::session {
namespace {

using Job = TrainingJob;

TEST(WindowScheduler, OpensWhenStepsAreSteady) {
  Job job;
  for (const int64_t slow : {9, 7, 5, 3}) {  // compiling
    job.step_ns = slow * kSecond;
    job.steps(1);
  }
  job.step_ns = 50 * kMs;
  job.steps(6);
  EXPECT_TRUE(job.log.empty()) << "the last eight steps are not alike yet";
  job.steps(4);
  ASSERT_FALSE(job.log.empty());
  EXPECT_EQ(job.log[0].substr(0, 18), "open steady steps@");
}

TEST(WindowScheduler, WarmingUpForTenMinutesIsLongEnough) {
  Job job;
  job.step_ns = kSecond;
  for (int i = 0; i < 45 && job.log.empty(); ++i) {
    job.step_ns += job.step_ns / 5;  // never steady
    job.steps(1);
  }
  EXPECT_GE(job.now_ns, 700 * kSecond);
  ASSERT_EQ(job.log.size(), 1u);
  EXPECT_EQ(job.log[0].substr(0, 21), "open still warming up");
}

TEST(WindowScheduler, WithoutStepsOpensAfterThreeSeconds) {
  Job job;
  job.idle(2900 * kMs);
  EXPECT_TRUE(job.log.empty());
  job.idle(200 * kMs);
  ASSERT_EQ(job.log.size(), 1u);
  EXPECT_EQ(job.log[0], "open no steps seen@0");
  // It needs records to close: an idle GPU gives none.
  job.idle(20 * kSecond);
  EXPECT_EQ(job.log.size(), 1u);
  job.facts.records = 5;
  job.tick();
  EXPECT_EQ(job.log[1], "close no steps seen@0");
}

TEST(WindowScheduler, WithoutStepsTheWindowWaitsForWork) {
  Job job;
  job.idle(3100 * kMs);
  ASSERT_EQ(job.log.size(), 1u);
  // Start-up: a kernel now and then, for 4 s.
  for (int i = 0; i < 200; ++i) {
    job.facts.records += i % 5 == 0 ? 1 : 0;
    job.tick();
  }
  EXPECT_EQ(job.log.size(), 1u);
  // The loop: 50 records in 20 ms.
  int ticks = 0;
  for (; job.log.size() == 1 && ticks < 1000; ++ticks) {
    job.facts.records += 50;
    job.tick();
  }
  EXPECT_NEAR(ticks * 20, 2000, 250);
}

TEST(WindowScheduler, AnIdleDeviceCostsNothing) {
  Job job;
  job.stall = false;
  job.attach_ns = job.detach_ns = kMs;
  job.idle(3100 * kMs);
  job.facts.records = 100;
  job.idle(13 * kSecond);
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_LT(job.scheduler.spent_ns(), 3 * kMs);
  // So the next one need not wait until 15 % of those seconds are 1 % of the run.
  job.idle(6 * kSecond);
  EXPECT_EQ(job.log.size(), 3u);
}

TEST(WindowScheduler, AWindowHoldsTwentyFourStepsHoweverLong) {
  Job job;
  job.step_ns = 30 * kSecond;
  while (job.log.empty()) job.steps(1);
  const uint64_t opened_at = job.facts.steps;
  job.steps(30);
  ASSERT_GE(job.log.size(), 2u);
  // After 30 s it is no longer cheap to wait for a forecast's worth of steps.
  EXPECT_EQ(job.log[1], "close steps@" + std::to_string(opened_at + WindowScheduler::kWindowSteps));
}

TEST(WindowScheduler, ACheapWindowHoldsEnoughForAForecast) {
  Job job;
  job.steps(100);
  ASSERT_GE(job.log.size(), 2u);
  EXPECT_EQ(job.log[1],
            "close steps@" + std::to_string(8 + 1 + WindowScheduler::kCheapWindowSteps));
  Job dear;
  dear.slowdown = 1.1;
  dear.steps(100);
  ASSERT_GE(dear.log.size(), 2u);
  EXPECT_EQ(dear.log[1], "close steps@" + std::to_string(8 + 1 + WindowScheduler::kWindowSteps));
}

TEST(WindowScheduler, ShortStepsAreRecordedForAThirdOfASecond) {
  Job job;
  job.step_ns = 2 * kMs;
  job.steps(1000);
  ASSERT_GE(job.log.size(), 2u);
  EXPECT_GE(job.scheduler.cost_so_far().inside_steps, 140u);
}

TEST(WindowScheduler, ManyRecordsCloseTheWindow) {
  Job job;
  job.records_per_step = 150'000;
  job.steps(25);
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1].substr(0, 13), "close records");
}

// The promise of --budget, for jobs of very different kinds.
struct Kind {
  const char* name;
  int64_t step_ns;
  double slowdown;
  int64_t attach_ns;
};
class Budget : public ::testing::TestWithParam<Kind> {};

TEST_P(Budget, IsKeptOverTheRun) {
  for (const double budget : {0.01, 0.002, 0.05}) {
    SchedulerOptions options;
    options.budget = budget;
    Job job(options);
    const int64_t start_ns = job.now_ns;
    job.step_ns = GetParam().step_ns;
    job.slowdown = GetParam().slowdown;
    job.attach_ns = GetParam().attach_ns;
    // Ten minutes, at least 300 steps.
    while (job.now_ns - start_ns < 600 * kSecond || job.facts.steps < 300 || job.scheduler.open()) {
      job.steps(1);
    }
    const double share =
        static_cast<double>(job.truly_spent_ns) / static_cast<double>(job.now_ns - start_ns);
    // The first window is not to be had for less.
    const double first =
        static_cast<double>(
            job.attach_ns + job.detach_ns +
            static_cast<int64_t>((job.slowdown - 1) *
                                 static_cast<double>(28 * job.step_ns + 300 * kMs))) /
        static_cast<double>(job.now_ns - start_ns);
    EXPECT_LE(share, std::max(budget, first) * 1.02) << "budget " << budget;
    EXPECT_GE(job.scheduler.windows(), 1u);
    if (first < budget / 4) {
      EXPECT_GE(job.scheduler.windows(), 2u) << "budget " << budget;
    }
    // The own accounts agree with the truth.
    EXPECT_NEAR(static_cast<double>(job.scheduler.spent_ns()),
                static_cast<double>(job.truly_spent_ns),
                0.15 * static_cast<double>(job.truly_spent_ns) + 20e6);
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, Budget,
                         ::testing::Values(Kind{"launch_bound", 2 * kMs, 1.15, 15 * kMs},
                                           Kind{"gpu_bound", 54 * kMs, 1.0, 80 * kMs},
                                           Kind{"slow_attach", 20 * kMs, 1.3, 600 * kMs},
                                           Kind{"large_model", 5 * kSecond, 1.01, 20 * kMs}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(WindowScheduler, CostOfStayingAttachedIsBooked) {
  Job job;
  while (job.log.empty()) job.steps(1);
  job.steps(10);
  SchedulerInput input = job.facts;
  job.scheduler.closed(job.now_ns, 0, true);
  const int64_t before_ns = job.scheduler.spent_ns();
  job.step_ns = 55 * kMs;  // 10 % slower than the 50 ms before
  for (int i = 0; i < 50; ++i) {
    ++input.steps;
    job.now_ns += job.step_ns;
    input.now_ns = job.now_ns;
    input.last_step_ns = job.now_ns;
    if (job.scheduler.tick(input).command != SchedulerCommand::kNothing) break;
  }
  EXPECT_NEAR(static_cast<double>(job.scheduler.spent_ns() - before_ns), 49 * 5e6, 10e6);
}

TEST(WindowScheduler, HiddenStallsAreNotBooked) {
  Job job;
  job.stall = false;  // the GPU had enough work queued: no step got longer
  job.attach_ns = 80 * kMs;
  job.steps(80);
  ASSERT_GE(job.log.size(), 2u);
  EXPECT_LT(job.scheduler.spent_ns(), 5 * kMs);
}

TEST(WindowScheduler, ACheckpointInsideIsNotOurCost) {
  Job job;
  while (job.log.empty()) job.steps(1);
  job.steps(5);
  job.step_ns = 20 * kSecond;
  job.steps(1);
  job.step_ns = 50 * kMs;
  job.steps(40);
  EXPECT_LT(job.scheduler.spent_ns(), 30 * kMs);
}

TEST(WindowScheduler, GapsGrow) {
  Job job;
  job.steps(20000);
  ASSERT_GE(job.open_times.size(), 4u);
  for (size_t i = 2; i < job.open_times.size(); ++i) {
    EXPECT_GT(job.open_times[i] - job.open_times[i - 1],
              job.open_times[i - 1] - job.open_times[i - 2]);
  }
}

TEST(WindowScheduler, RanksOpenAtTheSameSteps) {
  SchedulerOptions options;
  options.several_ranks = true;
  std::vector<std::vector<std::string>> logs;
  for (const int64_t step : {10 * kMs, 17 * kMs, 90 * kMs}) {
    Job job(options);
    job.step_ns = step;
    job.idle(step * 7);  // started at different times
    job.steps(1100);
    logs.push_back(job.log);
  }
  EXPECT_EQ(logs[0], logs[1]);
  EXPECT_EQ(logs[0], logs[2]);
  ASSERT_GE(logs[0].size(), 8u);
  EXPECT_EQ(logs[0][0], "open same step on all ranks@8");
  EXPECT_EQ(logs[0][1], "close steps@36");
  EXPECT_EQ(logs[0][2], "open same step on all ranks@64");
  EXPECT_EQ(logs[0][4], "open same step on all ranks@256");
  EXPECT_EQ(logs[0][6], "open same step on all ranks@1024");
}

TEST(WindowScheduler, RanksAskToBeWokenAtTheStep) {
  SchedulerOptions options;
  options.several_ranks = true;
  Job job(options);
  EXPECT_EQ(job.scheduler.next_step_of_interest(), 8u);
  job.steps(8);
  EXPECT_EQ(job.scheduler.next_step_of_interest(), 8u + WindowScheduler::kWindowSteps);
}

TEST(WindowScheduler, FullOpensAtOnceAndStays) {
  SchedulerOptions options;
  options.mode = WindowMode::kFull;
  Job job(options);
  job.tick(0);
  ASSERT_EQ(job.log.size(), 1u);
  job.records_per_step = 1'000'000;
  job.steps(1000);
  EXPECT_EQ(job.log.size(), 1u);
}

TEST(WindowScheduler, FullComesBackAsSoonAsAnotherToolIsDone) {
  SchedulerOptions options;
  options.mode = WindowMode::kFull;
  Job job(options);
  job.tick(0);
  job.steps(200);
  job.facts.hands_off = true;
  job.steps(2);
  job.facts.hands_off = false;
  job.steps(1);
  EXPECT_EQ(job.log.size(), 3u);
}

TEST(WindowScheduler, FixedWindow) {
  SchedulerOptions options;
  options.mode = WindowMode::kFixed;
  options.fixed_start = 10;
  options.fixed_length = 5;
  Job job(options);
  job.steps(40);
  EXPECT_EQ(job.log, (std::vector<std::string>{"open fixed@10", "close steps@15"}));
}

TEST(WindowScheduler, RanksKeepASmallBudgetByRarerWindows) {
  SchedulerOptions options;
  options.several_ranks = true;
  options.budget = 0.002;
  Job job(options);
  job.step_ns = 5 * kMs;
  job.steps(600);
  ASSERT_EQ(job.log.size(), 6u);
  EXPECT_EQ(job.log[4], "open same step on all ranks@512");
}

TEST(WindowScheduler, OffOpensOnlyOnRequest) {
  SchedulerOptions options;
  options.mode = WindowMode::kOff;
  Job job(options);
  job.steps(100);
  EXPECT_TRUE(job.log.empty());
  job.scheduler.request(true, "api");
  job.steps(100);
  job.scheduler.request(false, "ctl");
  job.steps(1);
  EXPECT_EQ(job.log, (std::vector<std::string>{"open api@101", "close ctl@201"}));
}

TEST(WindowScheduler, LimitsStopForGood) {
  SchedulerOptions options;
  options.steps = 30;
  Job job(options);
  job.steps(40);
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1], "close limit of -d or --steps@30");
  job.steps(5000);
  EXPECT_EQ(job.log.size(), 2u);
  EXPECT_TRUE(job.scheduler.stopped());

  SchedulerOptions timed;
  timed.duration_ns = 2 * kSecond;
  Job second(timed);
  second.steps(1000);
  ASSERT_EQ(second.log.size(), 2u);
  EXPECT_LE(second.open_times[0] - 100 * kSecond, 2 * kSecond);
}

TEST(WindowScheduler, NothingHappensDuringACapture) {
  Job job;
  job.facts.capture_open = true;
  job.steps(100);
  EXPECT_TRUE(job.log.empty());
  job.facts.capture_open = false;
  job.steps(1);
  ASSERT_EQ(job.log.size(), 1u);
  job.facts.capture_open = true;
  job.steps(100);
  EXPECT_EQ(job.log.size(), 1u) << "no detach either";
  // A capture that never ends (its thread died) does not hold the window for ever.
  job.idle(WindowScheduler::kCaptureLimitNs);
  EXPECT_EQ(job.log.size(), 2u);
}

TEST(WindowScheduler, AnotherToolGetsCuptiAndWeComeBack) {
  Job job;
  while (job.log.empty()) job.steps(1);
  job.facts.hands_off = true;
  job.tick();
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1].substr(0, 18), "close another tool");
  job.steps(2000);
  EXPECT_EQ(job.log.size(), 2u);
  job.facts.hands_off = false;
  job.steps(200);
  EXPECT_GE(job.log.size(), 4u);
}

TEST(WindowScheduler, TakenIsTriedAgainOtherFailuresAreNot) {
  Job job;
  while (job.log.empty()) job.steps(1);
  job.scheduler.open_failed(job.now_ns, true);
  Job other;
  SchedulerInput input;
  input.now_ns = 0;
  input.steps = 40;
  SchedulerOptions full;
  full.mode = WindowMode::kFull;
  WindowScheduler scheduler(full);
  scheduler.start(0);
  EXPECT_EQ(scheduler.tick(input).command, SchedulerCommand::kOpen);
  scheduler.open_failed(0, true);
  EXPECT_EQ(scheduler.tick(input).command, SchedulerCommand::kNothing);
  input.now_ns = WindowScheduler::kTakenRetryNs;
  EXPECT_EQ(scheduler.tick(input).command, SchedulerCommand::kOpen);
  scheduler.open_failed(input.now_ns, false);
  input.now_ns *= 100;
  EXPECT_EQ(scheduler.tick(input).command, SchedulerCommand::kNothing);
}

// Kinds are not switched on again in a job that has made graphs, unless somebody asks for it.
TEST(WindowScheduler, AfterAWindowThatStayedAttachedNoneComesByItself) {
  Job job;
  while (job.log.empty()) job.steps(1);
  job.facts.graphs_in_use = true;
  job.scheduler.closed(job.now_ns, 4 * kMs, true);
  job.steps(20000);
  job.idle(700 * kSecond);
  EXPECT_EQ(job.log.size(), 1u);
  job.scheduler.request(true, "api");
  job.steps(1);
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1].substr(0, 8), "open api");
}

TEST(WindowScheduler, NoSecondWindowWhereReattachIsUnsafe) {
  Job job;
  job.facts.reattach_allowed = false;
  job.steps(20000);
  EXPECT_EQ(job.log.size(), 2u);
}

}  // namespace
}  // namespace idlescope::session
