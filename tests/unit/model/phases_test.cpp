// Training and evaluation told apart by what steps launch (C4), and steps of loops that are
// hard for device anchors (C7): right, or no steps.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/model/launch_sequence.h"

namespace idlescope::test {
namespace {

bool counts(const model::StepTrack& track, int steps) {
  return std::abs(static_cast<int>(track.boundaries.size()) - steps) <= 1;
}

TEST(Phases, EvaluationBetweenStepsIsFoundWithItsBatches) {
  int found = 0;
  int all = 0;
  for (uint32_t seed = 1; seed <= 24; ++seed) {
    LoopShape shape;
    shape.seed = seed;
    shape.steps = 40;
    shape.layers = 6 + static_cast<int>(seed % 5) * 6;
    shape.autograd_thread = seed % 2 == 0;
    shape.vary_percent = seed % 3 == 0 ? 8 : 0;
    shape.noise_percent = seed % 4 == 0 ? 4 : 0;
    shape.evaluate_every = 10;
    shape.evaluation_batches = 4 + static_cast<int>(seed % 4) * 4;
    const model::StepTrack track = op_track(shape);
    SCOPED_TRACE(seed);
    EXPECT_TRUE(counts(track, 40)) << track.boundaries.size() << " by " << track.anchor;
    // The last evaluation is behind the last complete step.
    const int passes = static_cast<int>(track.evaluation.size());
    EXPECT_LE(passes, 4);
    const double expected = shape.evaluation_batches;
    for (int i = 0; i < passes; ++i) {
      const model::Stretch& stretch = track.evaluation[static_cast<size_t>(i)];
      const double launches = static_cast<double>(stretch.end_ns - stretch.begin_ns) / 10'000;
      EXPECT_NEAR(launches / (2 * shape.layers), expected, 0.15 * expected + 1);
    }
    ++all;
    if (passes >= 3 &&
        std::abs(static_cast<double>(track.evaluation_batches) - passes * expected) <= passes) {
      ++found;
    }
  }
  EXPECT_GE(found, all * 95 / 100);
}

TEST(Phases, LoopsWithoutEvaluationHaveNone) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    LoopShape shape;
    shape.seed = seed;
    shape.layers = 4 + static_cast<int>(seed);
    shape.accumulation = 1 + static_cast<int>(seed % 3);
    shape.autograd_thread = seed % 2 == 0;
    shape.vary_percent = static_cast<int>(seed % 4) * 5;
    shape.noise_percent = static_cast<int>(seed % 5) * 2;
    shape.named_optimizer = seed % 7 != 0;
    shape.two_models = seed % 6 == 0;
    EXPECT_TRUE(op_track(shape).evaluation.empty()) << seed;
  }
}

// A step without its update holds two whole passes, forward and backward.
TEST(Phases, SkippedUpdatesAreNoEvaluation) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    LoopShape shape;
    shape.seed = seed;
    shape.skip_update_every = 9;
    shape.autograd_thread = false;
    EXPECT_TRUE(op_track(shape).evaluation.empty()) << seed;
  }
}

TEST(Phases, StepsThatEvaluatedAreNotSteady) {
  LoopShape shape;
  shape.steps = 60;
  shape.evaluate_every = 12;
  shape.evaluation_batches = 20;
  Scene s = launch_sequence(shape);
  const model::Model m = model::build_model(s.take());
  int64_t shortest = INT64_MAX;
  size_t steady = 0;
  for (const model::DeviceStep& step : m.device_steps.at(0).steps) {
    shortest = std::min(shortest, step.duration_ns());
  }
  for (const model::DeviceStep& step : m.device_steps.at(0).steps) {
    if (!step.steady) continue;
    ++steady;
    EXPECT_LT(step.duration_ns(), 1.3 * static_cast<double>(shortest));
  }
  EXPECT_GE(steady, 50u);
}

// Two models with an optimizer each: one round is a step, or there are none; never half rounds.
TEST(Phases, TwoOptimizersAreOneRoundOrNoSteps) {
  int right = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    LoopShape shape;
    shape.seed = seed;
    shape.two_models = true;
    shape.named_optimizer = seed % 2 == 0;
    shape.autograd_thread = seed % 4 < 2;
    shape.vary_percent = seed % 3 == 0 ? 8 : 0;
    const model::StepTrack track = op_track(shape);
    EXPECT_TRUE(track.boundaries.empty() || counts(track, 40))
        << seed << ": " << track.boundaries.size() << " by " << track.anchor;
    right += counts(track, 40) ? 1 : 0;
  }
  EXPECT_GE(right, 15);
}

}  // namespace
}  // namespace idlescope::test
