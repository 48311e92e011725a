// Steps of several batches, evaluation between them, and windows that end while the device
// is behind.
#include "analysis/model/macro_steps.h"

#include <gtest/gtest.h>

#include "analysis/model/model.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

constexpr const char* kOptimizer = "multi_tensor_apply_kernel<AdamFunctor>";

// A loop without step marks: next(), forward and backward for each batch, the optimizer
// after every `batches`.
struct Job {
  int steps = 30;
  int batches = 1;
  int evaluate_every = 0;  // steps; five batches of another loader
  bool named = true;       // optimizer kernels have their name
  bool ranges = false;     // optimizer ranges of the Python bridge
};

Scene run(const Job& job) {
  Scene s;
  double at = 0;
  int64_t batch = 0;
  int evaluations = 0;
  const auto kernel = [&](const char* name) {
    s.kernel(at + 0.006, at + 0.9, s.launch(at, at + 0.004), 7, name);
    at += 1;
  };
  for (int step = 0; step < job.steps; ++step) {
    for (int b = 0; b < job.batches; ++b) {
      s.event(trace::EVENT_LOADER_NEXT, at, at + 0.1, {.iterator = 1, .batch = batch++});
      at += 0.1;
      for (const char* name : {"gemm", "relu", "relu_bwd", "gemm_bwd"}) kernel(name);
    }
    if (job.ranges) s.range("Optimizer.step#AdamW.step", trace::RANGE_OPTIMIZER, at, at + 1.9);
    for (int i = 0; i < 2; ++i) kernel(job.named ? kOptimizer : "elementwise");
    if (job.evaluate_every == 0 || step % job.evaluate_every != job.evaluate_every - 1) continue;
    const auto loader = static_cast<uint32_t>(10 + evaluations++);
    s.event(trace::EVENT_LOADER_CREATE, at, at, {.iterator = loader, .a = 2, .b = 2, .c = 0});
    for (int b = 0; b < 5; ++b) {
      s.event(trace::EVENT_LOADER_NEXT, at, at + 0.1, {.iterator = loader, .batch = b});
      at += 0.1;
      for (const char* name : {"gemm", "relu"}) kernel(name);
    }
  }
  return s;
}

TEST(MacroSteps, BatchesBetweenTwoUpdatesAreOneStep) {
  for (const bool ranges : {false, true}) {
    for (int batches = 1; batches <= 4; ++batches) {
      SCOPED_TRACE(batches);
      Scene s = run({.batches = batches, .named = !ranges, .ranges = ranges});
      const model::Model m = model::build_model(s.take());
      EXPECT_EQ(m.device_tracks.at(0).anchor, "loader");
      EXPECT_EQ(m.device_tracks.at(0).micro_steps, static_cast<uint32_t>(batches));
      EXPECT_NEAR(static_cast<double>(m.device_steps.at(0).steps.size()), 29, 1);
      EXPECT_EQ(m.device_tracks.at(0).confidence, 1);
    }
  }
}

TEST(MacroSteps, WithoutUpdatesEachBatchIsAStep) {
  Scene s = run({.batches = 2, .named = false});
  const model::Model m = model::build_model(s.take());
  EXPECT_EQ(m.device_tracks.at(0).micro_steps, 1u);
  EXPECT_NEAR(static_cast<double>(m.device_steps.at(0).steps.size()), 59, 1);
  EXPECT_LT(m.device_tracks.at(0).confidence, 1);
}

TEST(MacroSteps, PassesWithoutUpdatesAreEvaluation) {
  Scene s = run({.steps = 40, .batches = 2, .evaluate_every = 10});
  const model::Model m = model::build_model(s.take());
  const model::StepTrack& track = m.device_tracks.at(0);
  EXPECT_EQ(track.evaluation_batches, 20u);
  EXPECT_EQ(track.micro_steps, 2u);
  for (const model::DeviceStep& step : m.device_steps.at(0).steps) {
    if (step.steady) {
      EXPECT_FALSE(track.in_evaluation(step.begin_ns, step.end_ns));
      EXPECT_LT(step.duration_ns(), ms(11));
    }
  }
}

// An iterator that is closed long after its last batch, when the next one is made, is no pass
// that went on until then.
TEST(MacroSteps, AnEvaluationThatIsClosedLateEndsWhereTrainingGoesOn) {
  Scene s = run({.steps = 40, .evaluate_every = 10});
  const double last = 1e6;
  for (uint32_t loader = 10; loader < 13; ++loader) {
    // Closed right before the next evaluation begins, or at the end of the job.
    double at = last;
    for (const read::HostEvent& event : s.here().host_events) {
      if (event.kind == trace::EVENT_LOADER_CREATE && event.iterator == loader + 1) {
        at = static_cast<double>(event.begin_ns) / 1e6;
      }
    }
    s.event(trace::EVENT_LOADER_END, at - 0.2, at - 0.1, {.iterator = loader});
  }
  const model::Model m = model::build_model(s.take());
  const model::StepTrack& track = m.device_tracks.at(0);
  EXPECT_EQ(track.evaluation_batches, 20u);
  for (const model::Stretch& stretch : track.evaluation) {
    EXPECT_LT(stretch.end_ns - stretch.begin_ns, ms(12));
  }
}

// Outside of what the window saw the number of the batch in its pass goes on telling.
TEST(MacroSteps, GroupingGoesOnOutsideOfTheWindow) {
  std::vector<model::MicroStep> micro;
  model::WeightUpdates updates;
  for (int i = 0; i < 90; ++i) {
    micro.push_back({ms(i), i % 45});  // two passes of 45 batches
    if (i % 45 % 3 == 2) updates.times_ns.push_back(ms(i + 0.9));
  }
  std::erase_if(updates.times_ns, [](Ns t) { return t < ms(10) || t > ms(30); });
  updates.seen.push_back({ms(10), ms(30)});
  const model::MacroSteps steps = model::group_micro_steps(micro, updates);
  EXPECT_EQ(steps.micro_steps, 3u);
  ASSERT_EQ(steps.boundaries.size(), 30u);
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(steps.boundaries[i], ms(3.0 * static_cast<double>(i)));
}

TEST(MacroSteps, SkippedUpdatesMakeNoLongerSteps) {
  std::vector<model::MicroStep> micro;
  model::WeightUpdates updates;
  for (int i = 0; i < 60; ++i) {
    micro.push_back({ms(i), i});
    if (i % 9 != 0) updates.times_ns.push_back(ms(i + 0.9));  // loss scale was too large
  }
  updates.seen.push_back({ms(0), ms(60)});
  const model::MacroSteps steps = model::group_micro_steps(micro, updates);
  EXPECT_EQ(steps.micro_steps, 1u);
  EXPECT_EQ(steps.boundaries.size(), 60u);
}

// Two models in turn, a batch each: the optimizer that comes second closes the round.
TEST(MacroSteps, TwoModelsInTurnAreOneRound) {
  Scene s;
  double at = 0;
  for (int i = 0; i < 80; ++i) {
    s.event(trace::EVENT_LOADER_NEXT, at, at + 0.1, {.iterator = 1, .batch = i});
    at += 0.1;
    for (const char* name : {"gemm", "gemm_bwd", i % 2 == 0 ? "adam_generator" : "adam_critic"}) {
      s.kernel(at + 0.006, at + 0.9, s.launch(at, at + 0.004), 7, name);
      at += 1;
    }
  }
  const model::Model m = model::build_model(s.take());
  EXPECT_EQ(m.device_tracks.at(0).micro_steps, 2u);
  EXPECT_NEAR(static_cast<double>(m.device_steps.at(0).steps.size()), 39, 1);
}

// The host has launched three steps more than the device has run when the window ends.
TEST(MacroSteps, StepsCutByTheEndOfTheWindowAreNoSteps) {
  Scene s;
  s.window(-1, 405);
  for (int i = 0; i < 43; ++i) {
    s.step(i * 9.4);
    for (int k = 0; k < 4; ++k) {
      const double begin = 0.01 + i * 10.0 + k * 2.5;
      const uint32_t c = s.launch(i * 9.4 + k * 0.1 + 0.001, i * 9.4 + k * 0.1 + 0.005);
      if (begin < 404) s.kernel(begin, begin + 2.4, c);
    }
  }
  const model::Model m = model::build_model(s.take());
  ASSERT_FALSE(m.device_steps.at(0).steps.empty());
  for (const model::DeviceStep& step : m.device_steps.at(0).steps) {
    EXPECT_EQ(step.ops, 4u);
    EXPECT_GT(step.duration_ns(), ms(9));
  }
}

}  // namespace
}  // namespace idlescope::test
