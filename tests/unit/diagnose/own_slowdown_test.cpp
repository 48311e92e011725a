// What recording cost the steps, from host step times alone.
#include "analysis/diagnose/own_slowdown.h"

#include <gtest/gtest.h>

#include <vector>

namespace idlescope::diagnose {
namespace {

constexpr Ns kMs = 1'000'000;

// Steps one after the other, and a window over some of them.
struct Steps {
  void steps(int count, Ns duration_ns) {
    for (int i = 0; i < count; ++i) step(duration_ns);
  }
  void step(Ns duration_ns) {
    StepPoint point;
    point.begin_ns = now;
    point.duration_ns = duration_ns;
    point.steady = true;
    points.push_back(point);
    now += duration_ns;
  }
  void open() {
    process.windows.emplace_back();
    process.windows.back().begin_ns = now;
  }
  void close() { process.windows.back().end_ns = now; }
  double slowdown(Ns steady_from = 0) const { return own_slowdown(process, points, steady_from); }

  read::Process process;
  std::vector<StepPoint> points;
  Ns now = 0;
};

TEST(OwnSlowdown, IsTheRatioOfStepsBesideEachOther) {
  Steps run;
  run.steps(40, 20 * kMs);
  run.open();
  run.steps(20, 25 * kMs);
  run.close();
  run.steps(40, 20 * kMs);
  EXPECT_DOUBLE_EQ(run.slowdown(), 1.25);
}

TEST(OwnSlowdown, RareStallsOnEitherSideDoNotCount) {
  Steps run;
  for (int i = 0; i < 3; ++i) {
    run.steps(10, 20 * kMs);
    run.step(1200 * kMs);
  }
  run.open();
  run.steps(12, 22 * kMs);
  run.step(1200 * kMs);
  run.steps(12, 22 * kMs);
  run.close();
  run.steps(20, 20 * kMs);
  EXPECT_DOUBLE_EQ(run.slowdown(), 1.1);
}

TEST(OwnSlowdown, WarmUpBeforeTheWindowIsNoComparison) {
  Steps run;
  run.steps(12, 2000 * kMs);
  const Ns steady = run.now;
  run.open();
  run.steps(20, 25 * kMs);
  run.close();
  EXPECT_EQ(run.slowdown(steady), 0);
  run.steps(12, 20 * kMs);
  EXPECT_DOUBLE_EQ(run.slowdown(steady), 1.25);
}

TEST(OwnSlowdown, UnevenStepsSayNothing) {  // a loader that delivers in bursts
  Steps run;
  for (int i = 0; i < 8; ++i) {
    run.steps(2, 10 * kMs);
    run.steps(2, 200 * kMs);
  }
  run.open();
  run.steps(12, 10 * kMs);
  run.close();
  EXPECT_EQ(run.slowdown(), 0);
}

TEST(OwnSlowdown, NeverBelowOneAndNoneWhereStepsAreOfAnotherKind) {
  Steps run;
  run.steps(20, 20 * kMs);
  run.open();
  run.steps(20, 19 * kMs);
  run.close();
  EXPECT_EQ(run.slowdown(), 1);
  Steps other;
  other.steps(20, 20 * kMs);
  other.open();
  other.steps(20, 7 * kMs);
  other.close();
  EXPECT_EQ(other.slowdown(), 0);
}

TEST(OwnSlowdown, FewStepsSayNothing) {
  Steps run;
  run.steps(20, 20 * kMs);
  run.open();
  run.steps(4, 30 * kMs);
  run.close();
  EXPECT_EQ(run.slowdown(), 0);
}

}  // namespace
}  // namespace idlescope::diagnose
