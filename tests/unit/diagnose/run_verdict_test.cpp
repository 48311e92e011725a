// Start-up against the steady step.
#include "analysis/diagnose/run_verdict.h"

#include <gtest/gtest.h>

#include "proto/report.pb.h"

namespace idlescope::diagnose {
namespace {

constexpr Ns kSecond = 1'000'000'000;

// A short trial: imports and first steps until `startup_s`, training until `end_s`.
RunLedger short_trial(int startup_s, int first_batch_s, int end_s) {
  RunLedger run;
  run.end_ns = end_s * kSecond;
  run.startup_ns = startup_s * kSecond;
  run.first_batch_ns = first_batch_s * kSecond;
  run.median_step_ns = 20'000'000;
  run.mean_step_ns = 20e6;
  return run;
}

report::Verdict after(const RunLedger& run, report::Verdict steady) {
  Diagnosis diagnosis;
  diagnosis.verdict = steady;
  weigh_run_against_window(run, diagnosis);
  return diagnosis.verdict;
}

TEST(RunVerdict, ImportsDoNotHideTheSteadyVerdict) {
  const RunLedger run = short_trial(20, 0, 23);
  for (const report::Verdict steady : {report::COMPUTE, report::UNDERFILLED, report::SYNC}) {
    EXPECT_EQ(after(run, steady), steady);
  }
}

TEST(RunVerdict, SlowFirstBatchIsTheVerdictOnlyOfHealthyTraining) {
  const RunLedger run = short_trial(14, 6, 18);  // 6 of 10 s of the loop
  EXPECT_EQ(after(run, report::COMPUTE), report::STARTUP);
  EXPECT_EQ(after(run, report::UNDERFILLED), report::UNDERFILLED);
  EXPECT_EQ(after(run, report::DATA), report::DATA);
}

TEST(RunVerdict, SlowFirstBatchIsNotOnceTrainingWasSeen) {
  const RunLedger run = short_trial(14, 6, 18);
  Diagnosis diagnosis;
  diagnosis.verdict = report::COMPUTE;
  diagnosis.step.steady_steps = 19;
  weigh_run_against_window(run, diagnosis);
  EXPECT_EQ(diagnosis.verdict, report::STARTUP);
  diagnosis.verdict = report::COMPUTE;
  diagnosis.step.steady_steps = 20;
  weigh_run_against_window(run, diagnosis);
  EXPECT_EQ(diagnosis.verdict, report::COMPUTE);
}

TEST(RunVerdict, StallsAreAShareOfTheLoopTheyInterrupt) {
  RunLedger run = short_trial(20, 0, 40);
  run.loop_ns = 20 * kSecond;
  RunStall stall;
  stall.verdict = report::PERIODIC;
  stall.leaf = report::CKPT;
  stall.what = "checkpoint";
  stall.period_steps = 25;
  stall.total_ns = 14 * kSecond;
  stall.share_of_run = 14.0 / 40;
  run.stalls.push_back(stall);
  Diagnosis diagnosis;
  diagnosis.verdict = report::PERIODIC;
  diagnosis.step.steady_steps = 30;
  diagnosis.step.run_steps = 200;
  VerdictShare of_window;
  of_window.verdict = report::PERIODIC;
  of_window.share = 0.3;
  diagnosis.verdict_shares.push_back(of_window);
  weigh_run_against_window(run, diagnosis);
  EXPECT_EQ(diagnosis.verdict, report::PERIODIC);
  ASSERT_EQ(diagnosis.verdict_shares.size(), 1u);  // not the window's share as well
  EXPECT_DOUBLE_EQ(diagnosis.verdict_shares[0].share, 0.7);
}

TEST(RunVerdict, SlowFirstBatchOfALongRunIsNot) {
  EXPECT_EQ(after(short_trial(14, 6, 60), report::COMPUTE), report::COMPUTE);
}

TEST(RunVerdict, RestartsAtEveryEpochAre) {
  RunLedger run = short_trial(10, 3, 60);
  run.epoch_restart_ns = 30 * kSecond;
  EXPECT_EQ(after(run, report::COMPUTE), report::STARTUP);
}

TEST(RunVerdict, CapturingAllTheTimeIsSeenWithoutAFullWindow) {
  RunLedger run = short_trial(10, 0, 20);
  run.compiles = run.captures = 30;
  run.compile_ns = 6 * kSecond;
  EXPECT_EQ(after(run, report::CANNOT_TELL), report::COMPILE);
  run.compile_ns = kSecond;  // a tenth of the loop
  EXPECT_EQ(after(run, report::CANNOT_TELL), report::CANNOT_TELL);
  run.compile_ns = 6 * kSecond;
  EXPECT_EQ(after(run, report::DATA), report::DATA);  // the window's word counts
}

}  // namespace
}  // namespace idlescope::diagnose
