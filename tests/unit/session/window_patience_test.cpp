// Start-up must not use up the window that training needs.
#include <gtest/gtest.h>

#include "profiler/session/window_scheduler.h"

namespace idlescope::session {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStep = 50'000'000;

class Patience : public testing::Test {
 protected:
  Patience() { scheduler_.start(0); }

  // Ticks every 100 ms until `end_ns`; steps of 50 ms end from `training_ns` on. Returns when a
  // window opened first, -1 if none did. Windows are closed when the scheduler says so.
  int64_t run_until(int64_t end_ns, int64_t training_ns, bool steps_will_show,
                    bool reattach_sure = false) {
    int64_t opened = -1;
    for (; now_ns_ <= end_ns; now_ns_ += 100'000'000) {
      SchedulerInput input;
      input.now_ns = now_ns_;
      input.steps_will_show = steps_will_show;
      input.reattach_sure = reattach_sure;
      if (now_ns_ > training_ns) {
        input.steps = static_cast<uint64_t>((now_ns_ - training_ns) / kStep);
        input.last_step_ns = training_ns + static_cast<int64_t>(input.steps) * kStep;
      }
      // A busy device: 100 000 records a second.
      if (scheduler_.open()) {
        input.records = static_cast<uint64_t>((now_ns_ - opened_ns_) / 10'000);
      }
      const SchedulerDecision decision = scheduler_.tick(input);
      if (decision.command == SchedulerCommand::kOpen) {
        scheduler_.opened(now_ns_, 10'000'000);
        opened_ns_ = now_ns_;
        if (opened < 0) opened = now_ns_;
      } else if (decision.command == SchedulerCommand::kClose) {
        scheduler_.closed(now_ns_, 3'000'000);
      }
    }
    return opened;
  }

  WindowScheduler scheduler_{SchedulerOptions{}};
  int64_t now_ns_ = 0;
  int64_t opened_ns_ = 0;
};

TEST_F(Patience, StartUpOfPythonJobIsNotRecordedInstead) {
  const int64_t opened = run_until(40 * kSecond, 20 * kSecond, true);
  EXPECT_GE(opened, 20 * kSecond + 8 * kStep);  // the first steady steps
  EXPECT_LT(opened, 23 * kSecond);
}

TEST_F(Patience, JobWithoutMarksIsLookedAtEarly) {
  const int64_t opened = run_until(10 * kSecond, 100 * kSecond, false);
  EXPECT_GE(opened, 3 * kSecond);
  EXPECT_LT(opened, 4 * kSecond);
}

TEST_F(Patience, SilentPythonJobIsLookedAtAfterAMinute) {
  const int64_t opened = run_until(70 * kSecond, 1000 * kSecond, true);
  EXPECT_GE(opened, 60 * kSecond);
  EXPECT_LT(opened, 61 * kSecond);
}

TEST_F(Patience, WhereMoreWindowsCanComeTenSecondsAreEnough) {
  const int64_t opened = run_until(20 * kSecond, 1000 * kSecond, true, true);
  EXPECT_GE(opened, 10 * kSecond);
  EXPECT_LT(opened, 11 * kSecond);
}

TEST_F(Patience, WindowThatSawNoStepIsMadeUpFor) {
  run_until(8 * kSecond, 10 * kSecond, false);
  ASSERT_EQ(scheduler_.windows(), 1u);  // blind: by its cost the next one is a minute away
  EXPECT_GT(scheduler_.next_open_ns(), 20 * kSecond);
  const int64_t opened = run_until(20 * kSecond, 10 * kSecond, false);
  EXPECT_GE(opened, 10 * kSecond + 8 * kStep);
  EXPECT_LT(opened, 13 * kSecond);
  EXPECT_EQ(scheduler_.windows(), 2u);  // once only
}

}  // namespace
}  // namespace idlescope::session
