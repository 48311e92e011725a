// The training loop of one rank while it is being written into a Program: order of a step
// (loop_program.cpp), copies and waiting for the device (loop_copies.cpp), what else the host
// does (loop_host.cpp).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "analysis/simulate/loader_program.h"
#include "analysis/simulate/loop_spec.h"
#include "analysis/simulate/model_program.h"

namespace idlescope::simulate {

class RankLoop {
 public:
  // `collectives`: of each model (a GAN has two), shared by all ranks.
  RankLoop(ProgramBuilder* builder, const LoopSpec& spec, uint16_t rank,
           std::array<std::vector<uint32_t>, 2>* collectives);
  void build();

 private:
  void step(int s);
  void micro_step(int s, int micro);
  uint32_t transfer();
  OpSpec host_copy(trace::CopyKind kind, uint64_t bytes, bool pageable, uint16_t stream) const;
  void item();
  void synchronise(SyncKind kind);
  void after_layer(int s, int micro, int layer);
  void first_use(int s, int layer);
  void allocate(int s);
  void compile(int s);
  void host_work(int s);
  void checkpoint(int s);
  void evaluation(int s);
  void background();
  Ns vary(Ns ns, int s, uint64_t what) const;
  void windows(int s, bool middle);

  ProgramBuilder* b_;
  const LoopSpec& spec_;
  Draws draws_;
  uint16_t rank_;
  uint32_t process_;
  uint32_t main_;
  uint32_t autograd_ = kNone;
  uint32_t gil_ = kNone;
  std::unique_ptr<LoaderProgram> loader_;
  std::unique_ptr<LoaderProgram> evaluation_loader_;
  std::vector<std::unique_ptr<ModelProgram>> models_;
  uint32_t prefetched_ = kNone;
  int batches_left_ = 0;
};

}  // namespace idlescope::simulate
