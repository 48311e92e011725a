// Steps without annotations, the steady part, and the loader's history.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/model/model.h"
#include "analysis/model/op_anchors.h"
#include "analysis/model/steady_part.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

struct Sequence {
  int steps = 0;
  model::StepTrack track;
};

// Forward on the main thread, backward on autograd's, then the optimizer. Layers repeat,
// sequence length varies, some kernels are noise, evaluation has no optimizer.
Sequence random_sequence(uint32_t seed, bool named_optimizer) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  constexpr uint32_t kAutograd = 101;
  Scene s;
  Sequence out;
  out.steps = pick(8, 40);
  const int layers = pick(4, 48);
  const int accumulation = pick(1, 4) == 1 ? pick(2, 4) : 1;
  double at = 0;
  const auto op = [&](const std::string& name, uint32_t thread) {
    s.kernel(at + 0.006, at + 0.009, s.launch(at, at + 0.004, thread), 7, name);
    at += 0.010;
  };
  for (int step = 0; step < out.steps; ++step) {
    for (int micro = 0; micro < accumulation; ++micro) {
      const int length = layers + pick(0, layers / 10);
      for (int l = 0; l < length; ++l) {
        op("gemm_fwd<" + std::to_string(pick(0, 3)) + ">", kMain);
        op("relu", kMain);
        if (pick(0, 20) == 0) op("noise" + std::to_string(pick(0, 5)), kMain);
      }
      op("loss", kMain);
      for (int l = 0; l < length; ++l) {
        op("gemm_bwd", kAutograd);
        op("relu_bwd", kAutograd);
      }
    }
    for (int k = 0; k < 5; ++k) {
      op(named_optimizer ? "multi_tensor_apply_kernel<AdamFunctor>" : "elementwise", kMain);
    }
  }
  read::Recording recording = s.take();
  const std::vector<model::DeviceTimeline> devices = model::build_device_timelines(recording);
  out.track = model::find_op_track(recording, recording.processes[0], devices.at(0));
  if (!named_optimizer && accumulation > 1) out.steps *= accumulation;  // micro steps
  return out;
}

bool right(const Sequence& sequence) {
  return std::abs(static_cast<int>(sequence.track.boundaries.size()) - sequence.steps) <= 1;
}

TEST(Steps, OptimizerKernelsMarkStepsInNearlyAllSequences) {
  int good = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) good += right(random_sequence(seed, true));
  EXPECT_GE(good, 95);
}

TEST(Steps, ThreadsAlternateWhereTheOptimizerHasNoName) {
  int good = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) good += right(random_sequence(seed, false));
  EXPECT_GE(good, 95);
}

TEST(Steps, RepeatedLayersAloneAreNoSteps) {
  Scene s;
  double at = 0;
  for (int layer = 0; layer < 24; ++layer) {
    for (const char* name : {"gemm", "softmax", "gemm2", "norm"}) {
      s.kernel(at + 0.006, at + 0.009, s.launch(at, at + 0.004), 7, name);
      at += 0.010;
    }
  }
  read::Recording recording = s.take();
  const auto devices = model::build_device_timelines(recording);
  const auto track = model::find_op_track(recording, recording.processes[0], devices.at(0));
  EXPECT_TRUE(track.boundaries.empty());
  EXPECT_LT(track.confidence, 0.6);
}

// `steps` times twenty launches of one kernel and one of another, on one thread.
model::StepTrack plain_loop(int steps, read::Origin origin) {
  Scene s;
  double at = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 21; ++i) {
      s.kernel(at + 0.006, at + 0.009, s.launch(at, at + 0.004), 7, i < 20 ? "_kernel" : "add");
      at += 0.010;
    }
  }
  read::Recording recording = s.take();
  recording.origin = origin;
  const auto devices = model::build_device_timelines(recording);
  return model::find_op_track(recording, recording.processes[0], devices.at(0));
}

TEST(Steps, ALoopThatRepeatsExactlyHasSteps) {
  const auto own = plain_loop(100, read::Origin::kIdlescope);
  EXPECT_NEAR(static_cast<double>(own.boundaries.size()), 100, 1);
  EXPECT_GE(own.confidence, 0.6);
  EXPECT_LT(own.confidence, 0.8);  // no forecasts
  // Somebody else's profile of few repetitions may be the layers of one pass.
  EXPECT_TRUE(plain_loop(100, read::Origin::kKineto).boundaries.empty());
  EXPECT_TRUE(plain_loop(24, read::Origin::kIdlescope).boundaries.empty());
}

TEST(Steps, ReplaysAreStepsAlsoAfterManyEagerLaunches) {
  Scene s;
  double at = 0;
  for (int i = 0; i < 1500; ++i) {
    s.kernel(at + 0.006, at + 0.009, s.launch(at, at + 0.004), 7, "eager" + std::to_string(i % 50));
    at += 0.010;
  }
  for (int replay = 0; replay < 200; ++replay) {
    const uint32_t c = s.call(trace::CALL_GRAPH_LAUNCH, "cudaGraphLaunch", at, at + 0.010);
    for (int node = 0; node < 100; ++node) {
      s.kernel(at + 0.020 + node * 0.002, at + 0.0215 + node * 0.002, c, 7, "node");
      s.here().op_descriptors.back().graph_id = 5;
    }
    at += 0.25;
  }
  read::Recording recording = s.take();
  const auto devices = model::build_device_timelines(recording);
  const auto track = model::find_op_track(recording, recording.processes[0], devices.at(0));
  EXPECT_EQ(track.anchor, std::string("graph"));
  EXPECT_EQ(track.boundaries.size(), 200u);
}

TEST(Steps, LambdaIsNoOptimizer) {
  EXPECT_FALSE(model::is_optimizer_kernel("at::native::gpu_kernel_impl<...>::lambda(float)"));
  EXPECT_TRUE(model::is_optimizer_kernel("void lamb_stage1"));
  EXPECT_EQ(model::kernel_family("gemm128<4, float>_k2"), "gemm_k");
}

TEST(Steps, WarmUpIsCutAndSingleLongStepsStay) {
  std::vector<int64_t> durations{900, 400, 200, 150};
  for (int i = 0; i < 40; ++i) durations.push_back(i == 20 ? 800 : 100);
  const model::Range range = model::steady_range(durations);
  EXPECT_EQ(range.first, 3u);  // 150 is within 1.5x
  EXPECT_EQ(range.last, durations.size());
}

TEST(Steps, ALastingChangeSplitsTheSeries) {
  std::vector<int64_t> durations(30, 100);
  durations.insert(durations.end(), 60, 150);
  const model::Range range = model::steady_range(durations);
  EXPECT_EQ(range.first, 30u);
  EXPECT_EQ(range.last, 90u);
}

TEST(Steps, LevelsCloseToEachOtherStayTogetherWhereOneAloneIsTooShort) {
  std::vector<int64_t> durations(12, 53);
  durations.insert(durations.end(), 15, 62);
  model::Range range = model::steady_range(durations);
  EXPECT_EQ(range.size(), 27u);
  // Twice as long is another kind of step, however few are left.
  std::vector<int64_t> apart(12, 53);
  apart.insert(apart.end(), 15, 74);
  range = model::steady_range(apart);
  EXPECT_EQ(range.size(), 15u);
  EXPECT_EQ(range.first, 12u);
}

TEST(Clock, OpsThatStartBeforeTheirLaunchAreShifted) {
  Scene s;
  for (int i = 0; i < 50; ++i) {
    s.kernel(i * 1.0 - 0.005, i * 1.0 + 0.5, s.launch(i * 1.0, i * 1.0 + 0.004));
  }
  read::Recording recording = s.take();
  const model::ClockFit fit = model::fit_clocks(recording);
  EXPECT_EQ(fit.largest_shift_ns, ms(0.005));
  EXPECT_EQ(recording.processes[0].ops[3].begin_ns, ms(3.0));
  EXPECT_EQ(fit.violations, 0u);
}

TEST(Clock, OneOddOpMovesNothing) {
  Scene s;
  for (int i = 0; i < 50; ++i) {
    s.kernel(i * 1.0 + (i == 7 ? -0.005 : 0.006), i * 1.0 + 0.5,
             s.launch(i * 1.0, i * 1.0 + 0.004));
  }
  read::Recording recording = s.take();
  const model::ClockFit fit = model::fit_clocks(recording);
  EXPECT_EQ(fit.largest_shift_ns, 0);
  EXPECT_EQ(fit.violations, 1u);
}

TEST(Loader, WorkersAreTiedByPidAndEpochsByIndicesThatStartAgain) {
  Scene s;
  s.event(trace::EVENT_LOADER_CREATE, 0, 1,
          {.iterator = 1, .a = 1, .b = 2, .c = trace::LOADER_FLAG_PERSISTENT});
  s.event(trace::EVENT_LOADER_WORKER_STARTED, 0.5, 0.5, {.iterator = 1, .a = 0, .b = 77});
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < 3; ++i) {
      const double at = 10 + epoch * 100 + i * 10;
      s.event(trace::EVENT_LOADER_NEXT, at + 5, at + 6,
              {.iterator = 1, .epoch = epoch, .batch = i});
    }
  }
  s.in(s.add_worker(77));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < 3; ++i) {
      const double at = 10 + epoch * 100 + i * 10;
      s.event(trace::EVENT_WORKER_FETCH, at, at + 4, {.thread = 9, .batch = i, .a = 8, .b = 0});
    }
  }
  const read::Recording recording = s.take();
  const model::LoaderHistory history = model::build_loader_history(recording);
  ASSERT_EQ(history.iterators.size(), 1u);
  ASSERT_EQ(history.iterators[0].batches.size(), 6u);
  for (const uint32_t b : history.iterators[0].batches) {
    const model::Batch& batch = history.batches[b];
    EXPECT_TRUE(batch.fetched());
    EXPECT_EQ(batch.worker, 0u);
    EXPECT_EQ(batch.next_begin_ns - batch.fetch_begin_ns, ms(5));
  }
}

}  // namespace
}  // namespace idlescope::test
