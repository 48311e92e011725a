// Jobs with constant service times have known step times; the engine must give them.
#include <gtest/gtest.h>

#include "analysis/simulate/loop_program.h"
#include "analysis/simulate/scenario.h"

namespace idlescope::simulate {
namespace {

// A plain GPU-bound job without randomness that matters.
LoopSpec plain() {
  LoopSpec s;
  s.seed = 3;
  s.steps = 60;
  s.model.kernel_sigma = 0;
  s.loader.cv_permille = 0;
  s.loader.cpu_ns = 200000;
  s.transfer.path = CopyPath::kNoCopy;
  return s;
}

Ns step(const LoopSpec& s) {
  Program program = build_loop(s);
  Execution run = execute(program);
  EXPECT_TRUE(run.complete);
  return mean_step(program, run);
}

double ratio(Ns a, Ns b) { return static_cast<double>(a) / static_cast<double>(b); }

TEST(ClosedForms, GpuBoundStepIsTheSumOfItsKernels) {
  LoopSpec s = plain();
  Program program = build_loop(s);
  Ns sum = 0;
  for (const OpSpec& op : program.ops) sum += op.duration_ns + program.machine.dispatch_gap_ns;
  EXPECT_NEAR(ratio(step(s), sum / s.steps), 1.0, 0.005);
}

// max(c, s/w) is exact for constant service times (analysis D2).
TEST(ClosedForms, LoaderBoundStepIsServiceTimeOverWorkers) {
  for (int workers : {1, 2, 3, 5}) {
    LoopSpec s = plain();
    Ns healthy = step(s);
    s.loader.workers = workers;
    s.loader.cpu_ns = 3 * healthy * workers;
    s.loader.collate_ns = 0;
    s.steps = 246;  // batches come in groups of `workers`: the last group counts little
    Ns service = s.loader.cpu_ns + 20000 + 15000;  // fetch, collate's floor, put
    EXPECT_NEAR(ratio(step(s), service / workers), 1.0, 0.01) << workers;
  }
}

TEST(ClosedForms, WorkersShareCores) {
  LoopSpec s = plain();
  Ns healthy = step(s);
  s.steps = 246;
  s.loader.workers = 8;
  s.worker_cores = 2;
  s.loader.cpu_ns = 6 * healthy;  // eight workers on two cores: 6/2 healthy steps a batch
  EXPECT_NEAR(ratio(step(s), 3 * healthy), 1.0, 0.02);
}

TEST(ClosedForms, SharedStorageDoesNotGetFasterWithWorkers) {
  LoopSpec s = plain();
  Ns healthy = step(s);
  s.steps = 246;
  s.loader.read_ns = 2 * healthy;
  s.storage_streams = 1;
  s.loader.workers = 2;
  Ns two = step(s);
  s.loader.workers = 6;
  EXPECT_NEAR(ratio(step(s), two), 1.0, 0.02);
  EXPECT_NEAR(ratio(two, 2 * healthy), 1.0, 0.02);
}

TEST(ClosedForms, SerialLoaderAddsToTheHost) {
  LoopSpec s = plain();
  Ns healthy = step(s);
  s.loader.workers = 0;
  s.loader.pin = false;
  s.loader.cpu_ns = 2 * healthy;
  // The host runs ahead: step = host time of one step = loading + issuing.
  Program program = build_loop(s);
  Execution run = execute(program);
  Ns issue = 0;
  uint32_t in_steps = 0;
  for (uint32_t t = 0; t < program.threads.size(); ++t) {
    for (const Segment& segment : run.threads[t]) {
      const Instruction& in = program.threads[t].code[segment.instruction];
      if (in.what == Do::kAwait) continue;
      issue += segment.end_ns - segment.begin_ns;
      ++in_steps;
    }
  }
  EXPECT_GT(in_steps, 0U);
  EXPECT_NEAR(ratio(mean_step(program, run), issue / s.steps), 1.0, 0.05);
}

TEST(ClosedForms, LaunchBoundStepIsLaunchesTimesInterval) {
  LoopSpec s = plain();
  s.model.kernel_ns = 2000;
  s.model.optimizer_kernel_ns = 2000;
  s.model.dispatch_ns = 8000;
  s.model.autograd_thread = false;
  s.host.python_ns = 0;
  s.loader.on = false;
  Program program = build_loop(s);
  auto launches = static_cast<Ns>(program.ops.size()) / s.steps;
  Ns interval = s.model.dispatch_ns + program.machine.launch_call_ns;
  EXPECT_NEAR(ratio(step(s), launches * interval), 1.0, 0.02);
}

TEST(ClosedForms, StragglerSetsTheStepOfAllRanks) {
  LoopSpec s = plain();
  s.ranks = 2;
  Ns healthy = step(s);
  s.comm.straggler_rank = 1;
  s.comm.straggler_host_ns = 2 * healthy;
  Ns slow = step(s);
  EXPECT_GT(slow, 2 * healthy);
  EXPECT_LT(slow, 3 * healthy);
}

}  // namespace
}  // namespace idlescope::simulate
