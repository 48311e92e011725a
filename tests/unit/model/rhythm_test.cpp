// Steps from the rhythm of collectives and of busy time.
#include "analysis/model/rhythm_anchors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/unit/model/launch_sequence.h"

namespace idlescope::test {
namespace {

bool counts(const model::StepTrack& track, int steps) {
  return std::abs(static_cast<int>(track.boundaries.size()) - steps) <= 1;
}

// One thread, no named optimizer, steps of varying length: count mode alone may count layers,
// the rhythm of collectives says that it does not.
TEST(Rhythm, CollectivesConfirmStepsThatNothingElseDoes) {
  int right = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    LoopShape shape;
    shape.seed = seed;
    shape.layers = 8 + static_cast<int>(seed % 6) * 6;
    shape.named_optimizer = false;
    shape.autograd_thread = false;
    shape.vary_percent = static_cast<int>(seed % 3) * 6;
    shape.noise_percent = static_cast<int>(seed % 2) * 3;
    shape.collectives = 1 + static_cast<int>(seed % 4) * 2;
    const model::StepTrack track = op_track(shape);
    EXPECT_TRUE(track.boundaries.empty() || counts(track, 40))
        << seed << ": " << track.boundaries.size() << " by " << track.anchor;
    right += counts(track, 40) ? 1 : 0;
    shape.collectives = 0;
    EXPECT_TRUE(op_track(shape).boundaries.empty()) << seed;
  }
  EXPECT_GE(right, 20);
}

TEST(Rhythm, EvaluationBetweenStepsDoesNotShiftThem) {
  LoopShape shape;
  shape.named_optimizer = false;
  shape.autograd_thread = false;
  shape.collectives = 4;
  shape.evaluate_every = 10;
  shape.evaluation_batches = 6;
  Scene s = launch_sequence(shape);
  const read::Recording recording = s.take();
  const auto devices = model::build_device_timelines(recording);
  const auto order = model::launch_order(recording, recording.processes[0], devices.at(0), false);
  const model::Rhythm rhythm = model::collective_rhythm(order);
  EXPECT_TRUE(rhythm.pronounced);
  EXPECT_NEAR(static_cast<double>(rhythm.starts.size()), 40, 1);
}

// Tensor parallelism has two collectives a layer; a forward pass is no loop of steps.
TEST(Rhythm, ACollectivePerLayerIsNoStep) {
  Scene s;
  double at = 0;
  for (int layer = 0; layer < 48; ++layer) {
    for (const char* name : {"qkv", "attention", "out", "ncclDevKernel_AllReduce", "up", "act",
                             "down", "ncclDevKernel_AllReduce"}) {
      s.kernel(at + 0.006, at + 0.009, s.launch(at, at + 0.004), 7, name);
      at += 0.010;
    }
  }
  const read::Recording recording = s.take();
  const auto devices = model::build_device_timelines(recording);
  const auto track = model::find_op_track(recording, recording.processes[0], devices.at(0));
  EXPECT_TRUE(track.boundaries.empty()) << track.anchor;
}

// A step is several graphs of different size, each one opaque record.
model::StepTrack graph_pieces(uint32_t seed, int steps, double jitter, bool loop) {
  std::mt19937 random(seed);
  const auto about = [&](double ms) {
    return ms * std::uniform_real_distribution<double>(1 - jitter, 1 + jitter)(random);
  };
  Scene s;
  double at = 1;
  for (int step = 0; step < steps; ++step) {
    // Pieces run in a new order each step: no token comes evenly.
    std::vector<int> pieces = {0, 1, 2, 3, 4, 5};
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const double length = loop ? about(1.0 + 0.8 * static_cast<double>(i))
                                 : std::lognormal_distribution<double>(0.7, 0.9)(random);
      const uint32_t c = s.call(trace::CALL_GRAPH_LAUNCH, "cudaGraphLaunch", at - 0.02, at - 0.01);
      s.kernel(at, at + length, c, 7, "graph");
      s.here().op_descriptors.back().kind = trace::OP_GRAPH;
      s.here().op_descriptors.back().graph_id =
          static_cast<uint32_t>(1 + pieces[i]) + (random() % 3 == 0 ? 10u : 0u);
      at += length + about(loop ? 0.15 : 0.4) +
            (!loop ? std::exponential_distribution<double>(2)(random) : 0);
    }
    if (loop) at += about(3);
  }
  const read::Recording recording = s.take();
  const auto devices = model::build_device_timelines(recording);
  return model::find_op_track(recording, recording.processes[0], devices.at(0));
}

TEST(Rhythm, BusyTimeMarksStepsOfGraphsWithoutTokens) {
  int right = 0;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const model::StepTrack track = graph_pieces(seed, 60, 0.04, true);
    EXPECT_TRUE(track.boundaries.empty() || counts(track, 60))
        << seed << ": " << track.boundaries.size() << " by " << track.anchor;
    EXPECT_LT(track.confidence, 0.8);
    right += counts(track, 60) ? 1 : 0;
  }
  EXPECT_GE(right, 9);
}

TEST(Rhythm, BusyTimeWithoutPeriodHasNoSteps) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const model::StepTrack track = graph_pieces(seed, 60, 0.3, false);
    EXPECT_TRUE(track.boundaries.empty()) << seed << " by " << track.anchor;
  }
}

}  // namespace
}  // namespace idlescope::test
