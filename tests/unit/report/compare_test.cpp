// Before and after: repetitions decide, forecasts are held against the measurement.
#include "analysis/report/compare.h"

#include "analysis/report/layout.h"
#include "tests/unit/report/report_fixture.h"

namespace idlescope::report {
namespace {

using Outcome = Comparison::Outcome;

Report run(double step_ms, double data_ms, double half_interval_ms = 1) {
  Report report;
  report.set_verdict(data_ms > 0.1 * step_ms ? DATA : COMPUTE);
  report.set_certainty(SURE);
  StepSummary* step = report.mutable_step();
  step->set_steady_steps(100);
  step->set_mean_ns(static_cast<int64_t>(step_ms * 1e6));
  if (half_interval_ms > 0) {
    step->mutable_mean_ci()->set_low((step_ms - half_interval_ms) * 1e6);
    step->mutable_mean_ci()->set_high((step_ms + half_interval_ms) * 1e6);
    step->mutable_mean_ci()->set_level(0.95);
  }
  LeafTime* busy = report.add_leaves();
  busy->set_leaf(BUSY_COMPUTE);
  busy->set_per_step_ns(static_cast<int64_t>((step_ms - data_ms) * 1e6));
  LeafTime* data = report.add_leaves();
  data->set_leaf(DATA_CPU);
  data->set_per_step_ns(static_cast<int64_t>(data_ms * 1e6));
  return report;
}

TEST(Compare, OneRunEachUsesTheIntervalOfItsSteps) {
  const Comparison result = compare({run(212, 81)}, {run(135, 5)});
  EXPECT_EQ(result.outcome, Outcome::kFaster);
  EXPECT_NEAR(result.speedup, 1.57, 0.01);
  EXPECT_GT(result.speedup_low, 1.5);
  EXPECT_LT(result.speedup_high, 1.65);
  EXPECT_EQ(compare({run(135, 5)}, {run(212, 81)}).outcome, Outcome::kSlower);
  EXPECT_EQ(compare({run(100, 5)}, {run(100.5, 5)}).outcome, Outcome::kSame);
}

TEST(Compare, RepetitionsDecideOverTheStepsOfOneRun) {
  // Every run is precise, but the runs of a side differ by more than the change.
  const std::vector<Report> before = {run(100, 5, 0.1), run(110, 5, 0.1), run(105, 5, 0.1)};
  const std::vector<Report> after = {run(98, 5, 0.1), run(109, 5, 0.1), run(102, 5, 0.1)};
  EXPECT_EQ(compare(before, after).outcome, Outcome::kSame);
  EXPECT_EQ(compare({before[0]}, {after[0]}).outcome, Outcome::kFaster)
      << "one run each cannot know";
  const std::string text = render_comparison(compare({before[0]}, {after[0]}), TextOptions());
  EXPECT_NE(text.find("does not show how much runs differ"), std::string::npos) << text;
}

TEST(Compare, NoIntervalIsNotCertain) {
  EXPECT_EQ(compare({run(212, 81, 0)}, {run(135, 5, 0)}).outcome, Outcome::kUnclear);
}

TEST(Compare, PrefersStepsOutsideWindows) {
  Report before = run(100, 5);
  before.mutable_step()->set_unprofiled_mean_ns(90'000'000);
  EXPECT_DOUBLE_EQ(compare({before}, {run(90, 5)}).speedup, 1.0);
}

TEST(Compare, ForecastBesideTheMeasurement) {
  Report before = run(212, 81);
  Fix* fix = before.add_fixes();
  fix->mutable_text()->set_text("num_workers 2 -> 8");
  fix->mutable_forecast()->set_step_ns(132'000'000);
  fix->mutable_forecast()->set_speedup(1.61);
  fix->mutable_forecast()->mutable_speedup_ci()->set_low(1.53);
  fix->mutable_forecast()->mutable_speedup_ci()->set_high(1.67);
  std::string text = render_comparison(compare({before}, {run(135, 5)}), TextOptions());
  EXPECT_NE(
      text.find("Forecast for num_workers 2 -> 8: 132 ms a step, now 135 ms. The forecast holds."),
      std::string::npos)
      << text;
  text = render_comparison(compare({before}, {run(180, 50)}), TextOptions());
  EXPECT_NE(text.find("does\nnot hold."), std::string::npos) << text;
  EXPECT_NE(text.find("before   Your GPU waits for data. (sure)"), std::string::npos) << text;
}

TEST(Compare, RowsShowWhatChanged) {
  const std::string text = render_comparison(compare({run(212, 81)}, {run(135, 5)}), TextOptions());
  EXPECT_NE(text.find("step             212 ms      135 ms      -77 ms"), std::string::npos)
      << text;
  EXPECT_NE(text.find("data              81 ms        5 ms      -76 ms"), std::string::npos)
      << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 80u) << line;
}

TEST(Compare, NothingToCompare) {
  const Comparison result = compare({Report()}, {run(100, 5)});
  EXPECT_EQ(result.outcome, Outcome::kNotComparable);
  EXPECT_NE(render_comparison(result, TextOptions()).find("no training steps"), std::string::npos);
}

TEST(Compare, RunsThatDisagreeAreSaid) {
  EXPECT_TRUE(compare({run(212, 81), run(212, 1)}, {run(135, 5)}).before.verdicts_differ);
}

}  // namespace
}  // namespace idlescope::report
