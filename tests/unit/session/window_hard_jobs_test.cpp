// Windows of jobs that are short, that stop marking their steps, or whose steps are never alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/session/training_job.h"

namespace idlescope::session {
namespace {

// Steps that fell into windows while the job trains for `duration_ns`.
uint64_t recorded_steps(TrainingJob* job, int64_t duration_ns) {
  uint64_t inside = 0;
  const int64_t until_ns = job->now_ns + duration_ns;
  while (job->now_ns < until_ns) {
    const bool open = job->scheduler.open();
    job->steps(1);
    if (open) ++inside;
  }
  return inside;
}

TEST(ShortJob, FiveSecondsOfTrainingGiveAVerdict) {
  for (const int64_t step_ns : {3 * kMs, 20 * kMs, 50 * kMs, 99 * kMs, 150 * kMs, 180 * kMs}) {
    TrainingJob job;
    job.step_ns = step_ns;
    EXPECT_GE(recorded_steps(&job, 5 * kSecond), 20u) << step_ns / kMs << " ms a step";
  }
}

TEST(ShortJob, TwentySecondsOfHalfSecondSteps) {
  TrainingJob job;
  job.step_ns = 3 * kSecond;  // the first one compiles
  job.steps(1);
  job.step_ns = 500 * kMs;
  EXPECT_GE(recorded_steps(&job, 17 * kSecond), 20u);
}

TEST(ShortJob, BatchesThatWerePreparedBeforehandAreNotTheWholeWindow) {
  // 16 prefetched batches go by quickly, then the loader is the limit.
  TrainingJob job;
  job.step_ns = 20 * kMs;
  job.steps(16);
  ASSERT_EQ(job.log.size(), 1u);
  EXPECT_EQ(job.log[0], "open steady steps@9");
  job.step_ns = 90 * kMs;
  while (job.log.size() == 1) job.steps(1);
  EXPECT_GE(job.facts.steps, 32u);
  EXPECT_LE(job.facts.steps, 9 + WindowScheduler::kFirstWindowMaxSteps);
}

TEST(ShortJob, TheFirstWindowWaitsUntilItsStepsAreAlikeButNotForEver) {
  TrainingJob job;
  while (job.log.empty()) job.steps(1);
  const uint64_t opened_at = job.facts.steps;
  for (int i = 0; job.log.size() == 1 && i < 200; ++i) {
    job.step_ns += job.step_ns / 10;
    job.steps(1);
  }
  EXPECT_EQ(job.log[1],
            "close steps@" + std::to_string(opened_at + WindowScheduler::kFirstWindowMaxSteps));
}

TEST(IrregularSteps, AreRecordedAllTheSame) {
  TrainingJob job;
  job.step_ns = kMs;
  const auto step = [&] {  // batches sorted by length
    job.step_ns += job.step_ns * 16 / 100;
    job.steps(1);
  };
  while (job.log.empty() && job.facts.steps < 500) step();
  ASSERT_FALSE(job.log.empty());
  EXPECT_EQ(job.log[0],
            "open steps of all lengths@" + std::to_string(WindowScheduler::kIrregularSteps));
  while (job.log.size() == 1 && job.facts.steps < 500) step();
  EXPECT_EQ(job.log[1].substr(0, 11), "close steps");
}

// torch.compile works on the second step, and a graph was captured for it already.
TEST(SilentMarks, ACompilationIsNoSilence) {
  TrainingJob job;
  job.facts.graphs_in_use = true;
  job.steps(1);
  job.facts.compiling = true;
  job.idle(90 * kSecond);
  EXPECT_TRUE(job.log.empty());
  job.facts.compiling = false;
  job.facts.last_preparation_ns = job.now_ns;
  job.idle(WindowScheduler::kSilenceNs - kSecond);
  EXPECT_TRUE(job.log.empty());
  job.idle(2 * kSecond);
  ASSERT_EQ(job.log.size(), 1u);
  EXPECT_EQ(job.log[0], "open steps have stopped@1");
}

TEST(SilentMarks, ACompilationWhoseEndNobodyAnnouncesIsGivenUpOn) {
  TrainingJob job;
  job.steps(1);
  job.facts.compiling = true;
  job.facts.last_preparation_ns = job.now_ns;
  job.idle(WindowScheduler::kStillWarmingNs - kSecond);
  EXPECT_TRUE(job.log.empty());
  job.idle(2 * kSecond);
  EXPECT_EQ(job.log.size(), 1u);
}

// … or on the first one, for longer than the patience with a loop that shows no steps.
TEST(SilentMarks, TheFirstStepMayBeCompiledForMinutes) {
  TrainingJob job;
  job.facts.steps_will_show = true;
  job.facts.compiling = true;
  job.idle(WindowScheduler::kStillWarmingNs - kSecond);
  EXPECT_TRUE(job.log.empty());
  job.idle(2 * kSecond);
  EXPECT_EQ(job.log.size(), 1u) << "but not for ever";
}

TEST(SilentMarks, AGraphThatIsReplayedIsRecordedAfterAFewSeconds) {
  TrainingJob job;
  job.step_ns = 300 * kMs;  // eager steps before the capture, too few to be steady
  job.steps(3);
  job.facts.graphs_in_use = true;
  const int64_t silent_since_ns = job.now_ns;
  job.idle(2 * kSecond);
  EXPECT_TRUE(job.log.empty());
  job.idle(2 * kSecond);
  ASSERT_EQ(job.log.size(), 1u);
  EXPECT_EQ(job.log[0], "open steps have stopped@3");
  EXPECT_LT(job.open_times[0] - silent_since_ns, 4 * kSecond);
  job.facts.records = 20'000;
  job.idle(4 * kSecond);
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1], "close steps have stopped@3");
}

TEST(SilentMarks, OneLongFirstStepIsNotSilence) {
  TrainingJob job;
  job.steps(1);
  job.idle(50 * kSecond);  // the second step compiles
  EXPECT_TRUE(job.log.empty());
}

TEST(SilentMarks, LongStepsAreNotSilence) {
  TrainingJob job;
  job.step_ns = 30 * kSecond;
  job.steps(3);
  job.idle(100 * kSecond);
  EXPECT_TRUE(job.log.empty());
  job.idle(60 * kSecond);
  ASSERT_EQ(job.log.size(), 1u);
  EXPECT_EQ(job.log[0], "open steps have stopped@3");
}

TEST(SilentMarks, AWindowIsNotLeftOpenWhenTheStepsStop) {
  TrainingJob job;
  while (job.log.empty()) job.steps(1);
  job.steps(5);
  job.facts.records = 100;
  job.idle(5 * kSecond);  // evaluation, or a graph
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1].substr(0, 24), "close steps have stopped");
}

TEST(SilentMarks, ASleepingJobKeepsItsWindow) {
  TrainingJob job;
  while (job.log.empty()) job.steps(1);
  job.facts.records = 0;
  job.idle(30 * kSecond);
  EXPECT_EQ(job.log.size(), 1u) << "nothing was launched, so it cost nothing";
}

TEST(SilentMarks, AFloodWithoutMarksIsBounded) {
  TrainingJob job;
  job.steps(3);
  job.facts.graphs_in_use = true;
  while (job.log.empty()) job.tick();
  job.facts.records = 4 * WindowScheduler::kWindowMaxRecords;
  job.tick();
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1].substr(0, 13), "close records");
}

TEST(SilentMarks, TheBudgetHoldsForALoopWithoutMarks) {
  TrainingJob job;
  job.steps(3);
  job.facts.graphs_in_use = true;
  const int64_t start_ns = job.now_ns;
  int64_t open_ns = 0;
  while (job.now_ns - start_ns < 1800 * kSecond) {
    job.tick();
    if (!job.scheduler.open()) continue;
    job.facts.records += 1000;
    open_ns += 20 * kMs;
  }
  ASSERT_GE(job.open_times.size(), 2u);
  // Each window counts as 15 % slower while open, plus the stalls.
  const double cost =
      0.15 * static_cast<double>(open_ns) + static_cast<double>(job.open_times.size()) * 14e6;
  EXPECT_LT(cost / static_cast<double>(job.now_ns - start_ns), 0.0105);
}

TEST(SilentMarks, RanksWithoutMarksAreRecordedToo) {
  SchedulerOptions options;
  options.several_ranks = true;
  TrainingJob job(options);
  job.steps(3);
  job.facts.graphs_in_use = true;
  job.idle(5 * kSecond);
  ASSERT_EQ(job.log.size(), 1u);
  job.facts.records = 100'000;
  job.idle(5 * kSecond);
  EXPECT_EQ(job.log.size(), 2u);
  job.idle(20 * kSecond);
  EXPECT_EQ(job.log.size(), 2u) << "no step number tells when, so the budget does";
}

TEST(Requests, AreHonouredInOrder) {
  SchedulerOptions options;
  options.mode = WindowMode::kOff;
  TrainingJob job(options);
  job.scheduler.request(true, "api");
  job.scheduler.request(false, "api");
  job.scheduler.request(true, "ctl");
  job.steps(4);
  EXPECT_EQ(job.log, (std::vector<std::string>{"open api@1", "close api@2", "open ctl@3"}));
}

TEST(Requests, WaitForTheStepThatRanksAgreedOn) {
  SchedulerOptions options;
  options.mode = WindowMode::kOff;
  TrainingJob job(options);
  job.steps(5);
  job.scheduler.request(true, "ctl", 9);
  EXPECT_EQ(job.scheduler.next_step_of_interest(), 9u);
  job.steps(10);
  ASSERT_EQ(job.log.size(), 1u);
  EXPECT_EQ(job.log[0], "open ctl@9");
}

TEST(Requests, AnOpenWindowBecomesTheUsers) {
  TrainingJob job;
  while (job.log.empty()) job.steps(1);
  job.scheduler.request(true, "ctl");
  job.steps(200);
  EXPECT_EQ(job.log.size(), 1u) << "it would have closed by now";
  job.scheduler.request(false, "ctl");
  job.steps(1);
  ASSERT_EQ(job.log.size(), 2u);
  EXPECT_EQ(job.log[1].substr(0, 9), "close ctl");
}

TEST(Requests, StopWithoutAWindowDoesNothing) {
  SchedulerOptions options;
  options.mode = WindowMode::kOff;
  TrainingJob job(options);
  job.scheduler.request(false, "ctl");
  job.steps(3);
  job.scheduler.request(true, "ctl");
  job.steps(3);
  EXPECT_EQ(job.log, (std::vector<std::string>{"open ctl@4"}));
}

TEST(Requests, AWindowThatAnotherToolInterruptedComesBack) {
  SchedulerOptions options;
  options.mode = WindowMode::kOff;
  TrainingJob job(options);
  job.scheduler.request(true, "ctl");
  job.steps(2);
  job.facts.hands_off = true;
  job.steps(3);
  job.facts.hands_off = false;
  job.steps(1);
  EXPECT_EQ(job.log,
            (std::vector<std::string>{"open ctl@1", "close another tool@3", "open ctl@6"}));
}

TEST(Requests, MoreThanTheQueueHoldsKeepTheLastOne) {
  SchedulerOptions options;
  options.mode = WindowMode::kOff;
  TrainingJob job(options);
  for (int i = 0; i < 101; ++i) job.scheduler.request(i % 2 == 0, "api");
  job.steps(200);
  EXPECT_TRUE(job.scheduler.open());
}

}  // namespace
}  // namespace idlescope::session
