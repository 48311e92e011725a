// The device work of one model on one rank: kernels of forward, backward and optimizer with
// their launches, gradient exchange and graph replay. Durations of a kernel position are
// drawn once and vary a little from step to step.
#pragma once

#include <functional>
#include <vector>

#include "analysis/simulate/loop_spec.h"
#include "analysis/simulate/program_builder.h"

namespace idlescope::simulate {

class ModelProgram {
 public:
  ModelProgram(ProgramBuilder* builder, const LoopSpec& spec, const Draws& draws, uint16_t rank,
               uint32_t number, uint32_t main, uint32_t autograd, uint32_t gil,
               std::vector<uint32_t>* collectives);

  // Launches forward from the main thread; the first kernel waits for op `input` if given.
  // `after_layer` is called behind each layer's launches.
  void forward(int step, uint32_t input, const std::function<void(int)>& after_layer);
  // Launches backward (from the autograd thread, if there is one) and the gradient exchange.
  void backward(int step, bool exchange);
  void optimizer(int step);
  // Forward and backward as one graph launch.
  void graph_step(int step, uint32_t input);

  // Python and ATen work before a launch.
  void dispatch(uint32_t thread, Ns ns);
  int forward_launches() const { return spec_.layers * spec_.kernels_per_layer; }

 private:
  OpSpec kernel(int position, int step) const;
  void launch(uint32_t thread, int position, int step, uint32_t dep);
  Ns dispatch_ns(int position, int step) const;
  void exchange_bucket(uint32_t thread, int step, int bucket);

  ProgramBuilder* builder_;
  const LoopSpec& loop_;
  const ModelSpec& spec_;
  Draws draws_;
  uint16_t rank_;
  uint32_t number_;
  uint32_t main_;
  uint32_t autograd_;
  uint32_t gil_;
  std::vector<uint32_t>* collectives_;  // shared by all ranks, in order of use
  size_t next_collective_ = 0;
  uint32_t last_exchange_ = kNone;
  uint32_t last_kernel_ = kNone;
};

}  // namespace idlescope::simulate
