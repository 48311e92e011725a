// Random training loops as sequences of kernel launches, without marks or loader: what anchors
// of the device have to find steps and phases in.
#pragma once

#include <random>
#include <string>

#include "analysis/model/model.h"
#include "analysis/model/op_anchors.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {

struct LoopShape {
  int steps = 40;
  int layers = 12;
  int accumulation = 1;
  bool named_optimizer = true;
  bool autograd_thread = true;
  int vary_percent = 0;    // of the layers, more in some steps (sequence length)
  int noise_percent = 0;   // kernels that come and go
  int evaluate_every = 0;  // steps
  int evaluation_batches = 0;
  int skip_update_every = 0;  // the loss scale was too large
  int collectives = 0;        // per step, in backward, all of one size
  bool two_models = false;    // GAN: two optimizers, two families of kernels
  uint32_t seed = 1;
};

inline Scene launch_sequence(const LoopShape& shape) {
  std::mt19937 random(shape.seed);
  const auto below = [&](int n) {
    return n <= 0 ? 0 : std::uniform_int_distribution<int>(0, n - 1)(random);
  };
  constexpr uint32_t kAutograd = 101;
  const uint32_t backward = shape.autograd_thread ? kAutograd : kMain;
  Scene s;
  double at = 0;
  const auto op = [&](const std::string& name, uint32_t thread, double length = 0.003,
                      uint32_t stream = 7) {
    s.kernel(at + 0.006, at + 0.006 + length, s.launch(at, at + 0.004, thread), stream, name);
    at += 0.010;
  };
  const auto forward = [&](const std::string& model, int layers) {
    for (int l = 0; l < layers; ++l) {
      op(model + "_fwd<" + std::to_string(below(4)) + ">", kMain);
      op(model + "_act", kMain);
      if (below(100) < shape.noise_percent)
        op("noise_" + std::string(1, static_cast<char>('a' + below(5))), kMain);
    }
  };
  const auto pass = [&](const std::string& model, bool last) {
    const int layers = shape.layers + below(shape.layers * shape.vary_percent / 100 + 1);
    forward(model, layers);
    op(model + "_loss", kMain);
    for (int l = layers; l-- > 0;) {
      op(model + "_bwd", backward);
      op(model + "_act_bwd", backward);
      if (last && shape.collectives > 0 && l % std::max(1, layers / shape.collectives) == 0) {
        op("ncclDevKernel_AllReduce_Sum_f32_RING_LL", backward, 0.002, 20);
      }
    }
  };
  const auto update = [&](const std::string& model) {
    for (int k = 0; k < 5; ++k) {
      op(shape.named_optimizer ? "multi_tensor_apply_kernel<Adam_" + model + ">" : "elementwise",
         kMain);
    }
  };
  for (int step = 0; step < shape.steps; ++step) {
    for (int micro = 0; micro < shape.accumulation; ++micro) {
      pass("gemm", micro + 1 == shape.accumulation);
    }
    const bool skip = shape.skip_update_every > 0 && step % shape.skip_update_every == 3;
    if (!skip) update("gemm");
    if (shape.two_models) {
      pass("conv", true);
      for (int k = 0; k < 3; ++k) op(shape.named_optimizer ? "sgd_momentum_kernel" : "axpy", kMain);
    }
    if (shape.evaluate_every > 0 && step % shape.evaluate_every == shape.evaluate_every - 1) {
      for (int b = 0; b < shape.evaluation_batches; ++b) forward("gemm", shape.layers);
    }
  }
  return s;
}

inline model::StepTrack op_track(const LoopShape& shape) {
  Scene s = launch_sequence(shape);
  const read::Recording recording = s.take();
  const std::vector<model::DeviceTimeline> devices = model::build_device_timelines(recording);
  return model::find_op_track(recording, recording.processes[0], devices.at(0));
}

}  // namespace idlescope::test
