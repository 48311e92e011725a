#include "profiler/session/window_scheduler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace idlescope::session {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;

// A job whose steps the test sets, a recorder that costs what the test says.
class Job {
 public:
  explicit Job(const SchedulerOptions& options = {}) : scheduler(options) {
    scheduler.start(now_ns);
  }

  WindowScheduler scheduler;
  int64_t now_ns = 100 * kSecond;
  int64_t step_ns = 50 * kMs;  // plain
  double slowdown = 1.0;       // inside
  int64_t attach_ns = 10 * kMs;
  int64_t detach_ns = 4 * kMs;
  bool stall = true;  // steps wait for attach and detach
  uint64_t records_per_step = 100;
  SchedulerInput facts;
  std::vector<std::string> log;  // "open reason@step"
  std::vector<int64_t> open_times;
  int64_t truly_spent_ns = 0;

  void tick(int64_t duration_ns = 20 * kMs) {
    now_ns += duration_ns;
    facts.now_ns = now_ns;
    const SchedulerDecision decision = scheduler.tick(facts);
    if (decision.command == SchedulerCommand::kOpen) {
      log.push_back(std::string("open ") + decision.reason + "@" + std::to_string(facts.steps));
      open_times.push_back(now_ns);
      if (stall) truly_spent_ns += attach_ns;
      scheduler.opened(now_ns, attach_ns);
      facts.records = 0;
      owed_ns_ += stall ? attach_ns : 0;
    }
    if (decision.command == SchedulerCommand::kClose) {
      log.push_back(std::string("close ") + decision.reason + "@" + std::to_string(facts.steps));
      if (stall) truly_spent_ns += detach_ns;
      scheduler.closed(now_ns, detach_ns);
      owed_ns_ += stall ? detach_ns : 0;
    }
  }
  // Steps of the job, the scheduler ticking after each.
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      const bool inside = scheduler.open();
      const auto took =
          static_cast<int64_t>(static_cast<double>(step_ns) * (inside ? slowdown : 1.0)) + owed_ns_;
      if (inside) truly_spent_ns += took - owed_ns_ - step_ns;
      owed_ns_ = 0;
      ++facts.steps;
      facts.records += records_per_step;
      facts.last_step_ns = now_ns + took;
      tick(took);
    }
  }
  void idle(int64_t duration_ns) {
    for (int64_t spent = 0; spent < duration_ns; spent += 20 * kMs) tick();
  }

 private:
  int64_t owed_ns_ = 0;
};

TEST(WindowScheduler, OpensWhenStepsAreSteady) {
  Job job;
  job.step_ns = 2 * kSecond;  // compiling
  job.steps(5);
  job.step_ns = 200 * kMs;
  job.steps(9);
  EXPECT_TRUE(job.log.empty()) << "the last sixteen steps are not alike yet";
  job.steps(20);
  ASSERT_FALSE(job.log.empty());
  EXPECT_EQ(job.log[0].substr(0, 18), "open steady steps@");
}

TEST(WindowScheduler, WarmingUpForTenMinutesIsLongEnough) {
  Job job;
  job.step_ns = 100 * kMs;
  for (int i = 0; i < 500 && job.log.empty(); ++i) {
    job.step_ns += job.step_ns / 20;  // never steady
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
  job.idle(10 * kSecond);
  EXPECT_EQ(job.log.size(), 1u);
  job.facts.records = 5;
  job.tick();
  EXPECT_EQ(job.log[1], "close no steps seen@0");
}

TEST(WindowScheduler, AWindowHoldsTwentyFourStepsHoweverLong) {
  Job job;
  job.step_ns = 30 * kSecond;
  job.steps(17);
  ASSERT_EQ(job.log.size(), 1u);
  const uint64_t opened_at = job.facts.steps;
  job.steps(30);
  ASSERT_GE(job.log.size(), 2u);
  EXPECT_EQ(job.log[1], "close steps@" + std::to_string(opened_at + WindowScheduler::kWindowSteps));
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
    while (job.now_ns - start_ns < 600 * kSecond || job.facts.steps < 300) job.steps(1);
    const double share =
        static_cast<double>(job.truly_spent_ns) / static_cast<double>(job.now_ns - start_ns);
    // The first window is not to be had for less.
    const double first =
        static_cast<double>(
            job.attach_ns + job.detach_ns +
            static_cast<int64_t>((job.slowdown - 1) *
                                 static_cast<double>(24 * job.step_ns + 300 * kMs))) /
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
  job.steps(60);
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
    job.steps(600);
    logs.push_back(job.log);
  }
  EXPECT_EQ(logs[0], logs[1]);
  EXPECT_EQ(logs[0], logs[2]);
  ASSERT_GE(logs[0].size(), 8u);
  EXPECT_EQ(logs[0][0], "open same step on all ranks@32");
  EXPECT_EQ(logs[0][1], "close steps@56");
  EXPECT_EQ(logs[0][2], "open same step on all ranks@64");
  EXPECT_EQ(logs[0][4], "open same step on all ranks@128");
}

TEST(WindowScheduler, RanksAskToBeWokenAtTheStep) {
  SchedulerOptions options;
  options.several_ranks = true;
  Job job(options);
  EXPECT_EQ(job.scheduler.next_step_of_interest(), 32u);
  job.steps(32);
  EXPECT_EQ(job.scheduler.next_step_of_interest(), 32u + WindowScheduler::kWindowSteps);
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

TEST(WindowScheduler, FixedWindow) {
  SchedulerOptions options;
  options.mode = WindowMode::kFixed;
  options.fixed_start = 10;
  options.fixed_length = 5;
  Job job(options);
  job.steps(40);
  EXPECT_EQ(job.log, (std::vector<std::string>{"open fixed@10", "close steps@15"}));
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

TEST(WindowScheduler, NoSecondWindowWhereReattachIsUnsafe) {
  Job job;
  job.facts.reattach_allowed = false;
  job.steps(20000);
  EXPECT_EQ(job.log.size(), 2u);
}

}  // namespace
}  // namespace idlescope::session
