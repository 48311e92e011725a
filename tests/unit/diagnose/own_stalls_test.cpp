// What the recorder made the job wait for is no stall of the job: attaching, and a finalize that
// came late because it waited for a step mark.
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/diagnose/scene.h"

namespace idlescope::diagnose {
namespace {

using test::ms;
using test::Scene;

constexpr double kStep = 10;
constexpr int kEvery = 20;  // steps between windows: regular, so that a stall has a period

struct Stalls {
  double attach = 0;
  double detach = 0;     // flush and finalize
  double wait = 0;       // between the two: the job trains on
  double own_stall = 0;  // of the step that the finalize falls into
  double job_stall = 0;  // of the step in the middle of the wait
  bool windows = true;
};

Diagnosis run(const Stalls& stalls) {
  Scene s;
  double at = 0;
  const auto step = [&](double took) {
    at += took;
    s.step(at);
  };
  for (int i = 0; i < 30; ++i) step(kStep);
  for (int round = 0; round < 8; ++round) {
    step(kStep + stalls.attach);  // the attach falls into this one, and ends with it
    const double begin = at;
    for (int i = 0; i < 5; ++i) step(kStep);
    const double end = at;
    const int waited = static_cast<int>(stalls.wait / kStep);
    for (int i = 0; i < waited; ++i) step(kStep + (i == waited / 2 ? stalls.job_stall : 0));
    step(kStep + stalls.own_stall);
    for (int i = 0; i < kEvery - waited; ++i) step(kStep);
    if (!stalls.windows) continue;
    s.window(begin, end);
  }
  read::Recording recording = s.take();
  for (read::Window& window : recording.processes[0].windows) {
    window.begin.set_attach_ns(ms(stalls.attach));
    window.end.set_detach_ns(ms(stalls.detach));
    window.end.set_detach_wait_ns(ms(stalls.wait + stalls.job_stall));
    window.end.set_stood_ns(ms(stalls.own_stall));
  }
  return analyze(std::move(recording)).diagnosis;
}

TEST(OwnStalls, AreNotTheJobs) {
  const Stalls ours = {.attach = 80, .detach = 45, .wait = 60, .own_stall = 40};
  EXPECT_TRUE(run(ours).run.stalls.empty());
  // Plain steps are those that we did not touch.
  EXPECT_NEAR(run(ours).step.unprofiled_mean_ns, 10e6, 1e3);
  // The same without a recorder at work is found.
  const Diagnosis found = run({.wait = 60, .own_stall = 40, .windows = false});
  ASSERT_FALSE(found.run.stalls.empty());
  EXPECT_GE(found.run.stalls[0].count, 8u);
}

TEST(OwnStalls, TheFinalizeMayComeLongAfterTheWindow) {
  const Stalls late = {.attach = 0, .detach = 45, .wait = 150, .own_stall = 40};
  EXPECT_TRUE(run(late).run.stalls.empty());
}

TEST(OwnStalls, HideNoStallOfTheJob) {
  // While we waited for a step mark the job stood for a second, for its own reasons.
  const Stalls both = {.attach = 0, .detach = 45, .wait = 60, .own_stall = 40, .job_stall = 1000};
  const Diagnosis d = run(both);
  ASSERT_FALSE(d.run.stalls.empty());
  EXPECT_EQ(d.run.stalls[0].count, 8u);
  EXPECT_NEAR(static_cast<double>(d.run.stalls[0].mean_ns), 1e9, 60e6);
}

}  // namespace
}  // namespace idlescope::diagnose
