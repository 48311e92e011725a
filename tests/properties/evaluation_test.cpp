// Simulated jobs that evaluate every few steps: both phases are reported, each on its own,
// whatever evidence there is for them.
#include <gtest/gtest.h>

#include "analysis/simulate/scenario_files.h"
#include "analysis/simulate/scenario_sets.h"
#include "tests/properties/recordings.h"

namespace idlescope::test {
namespace {

enum class Evidence { kMarksAndLoader, kLoader, kKernelsOnly };

report::Report report_of(int every, int batches, Evidence evidence) {
  simulate::Scenario scenario = simulate::single_scenario("none", "", 0, "clean", 21);
  scenario.base.micro_steps = 1;
  scenario.base.gan = false;
  scenario.base.model.graph = false;
  scenario.base.steps = 90;
  scenario.base.evaluation.every = every;
  scenario.base.evaluation.batches = batches;
  scenario.base.windows = {};
  scenario.base.windows[0] = {12, 80, false};
  if (evidence != Evidence::kMarksAndLoader) {
    scenario.view.removed = {trace::KIND_STEP, trace::KIND_NVTX};
  }
  if (evidence == Evidence::kKernelsOnly) {
    for (const trace::Kind kind :
         {trace::KIND_LOADER, trace::KIND_LOADER_WORKER, trace::KIND_PYTHON_RANGE}) {
      scenario.view.removed.push_back(kind);
    }
  }
  Files files = simulate::scenario_files(scenario).value();
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".istrace"); });
  const Answer answer = answer_to(files);
  EXPECT_TRUE(answer.read) << answer.fault;
  return answer.report;
}

class Evaluation : public testing::TestWithParam<Evidence> {};

TEST_P(Evaluation, IsAPhaseOfItsOwn) {
  const report::Report plain = report_of(0, 0, GetParam());
  ASSERT_EQ(plain.phases_size(), 1);
  const report::Report report = report_of(15, 10, GetParam());
  ASSERT_EQ(report.phases_size(), 2) << report.step().anchor();
  const report::Phase& train = report.phases(0);
  const report::Phase& evaluation = report.phases(1);
  EXPECT_EQ(evaluation.name(), "evaluation");
  // Six passes in the whole run; four or five of them in the window, where only kernels tell.
  const bool kernels = GetParam() == Evidence::kKernelsOnly;
  EXPECT_GE(evaluation.steps(), kernels ? 36u : 50u);
  EXPECT_LE(evaluation.steps(), kernels ? 52u : 60u);
  EXPECT_GT(evaluation.window_ns(), 0);
  int64_t sum = 0;
  for (const report::LeafTime& leaf : evaluation.leaves()) sum += leaf.total_ns();
  EXPECT_EQ(sum, evaluation.window_ns());
  // A forward pass is shorter than a step, and training is what it is without evaluation.
  EXPECT_LT(evaluation.mean_step_ns(), train.mean_step_ns());
  EXPECT_EQ(report.verdict(), plain.verdict());
  EXPECT_NEAR(static_cast<double>(report.step().mean_ns()),
              static_cast<double>(plain.step().mean_ns()),
              0.05 * static_cast<double>(plain.step().mean_ns()));
  EXPECT_NEAR(train.busy_share(), plain.phases(0).busy_share(), 0.03);
}

INSTANTIATE_TEST_SUITE_P(Jobs, Evaluation,
                         testing::Values(Evidence::kMarksAndLoader, Evidence::kLoader,
                                         Evidence::kKernelsOnly));

}  // namespace
}  // namespace idlescope::test
