#include "analysis/report/fix_words.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/report/numbers.h"
#include "analysis/report/words.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// The step before `report.fixes(index)`: what the last forecast above it promised.
int64_t step_before(const Report& report, int index) {
  for (int above = index - 1; above >= 0; --above) {
    const Forecast& forecast = report.fixes(above).forecast();
    if (report.fixes(above).has_forecast() && !forecast.per_epoch() && !forecast.bound_only()) {
      return forecast.step_ns();
    }
  }
  return report.step().unprofiled_mean_ns() > 0 ? report.step().unprofiled_mean_ns()
                                                : report.step().mean_ns();
}

double steps_per_epoch(const Report& report) {
  if (report.run().epochs() < 1 || report.step().run_steps() == 0) return 0;
  return static_cast<double>(report.step().run_steps()) /
         static_cast<double>(report.run().epochs());
}

}  // namespace

std::vector<Text> gain_sentences(const Report& report, int index) {
  const Fix& fix = report.fixes(index);
  std::vector<Text> out;
  if (fix.has_forecast()) {
    const Forecast& forecast = fix.forecast();
    const int64_t before = step_before(report, index);
    const TimeScale scale(before);
    Text text;
    if (forecast.bound_only()) {
      text = Say(messages::kForecastBound)
                 .with("from", scale.number(before))
                 .with("to", scale.with_unit(forecast.step_ns()))
                 .with("speedup", speedup(forecast.speedup()));
    } else {
      const bool first = index == 0 || !report.fixes(0).has_forecast();
      text = Say(forecast.per_epoch() ? messages::kForecastPerEpoch
                 : first              ? messages::kForecastStep
                                      : messages::kForecastTogether)
                 .with("from", scale.number(before))
                 .with("to", scale.with_unit(forecast.step_ns()))
                 .with("speedup", speedup(forecast.speedup()))
                 .with("low", fmt::format("{:.2f}", forecast.speedup_ci().low()))
                 .with("high", fmt::format("{:.2f}", forecast.speedup_ci().high()));
    }
    out.push_back(text);
    const double steps = steps_per_epoch(report);
    if (index == 0 && steps > 1 && !forecast.per_epoch() && !forecast.bound_only() &&
        forecast.speedup() > 0) {
      const double epoch_ns = static_cast<double>(before) * steps;
      if (epoch_ns > 60e9) {
        const TimeScale epoch_scale(std::llround(epoch_ns));
        out.push_back(Say(messages::kForecastEpoch)
                          .with("from", epoch_scale.number(std::llround(epoch_ns)))
                          .with("to", epoch_scale.with_unit(std::llround(
                                          static_cast<double>(forecast.step_ns()) * steps))));
      }
    }
    return out;
  }
  if (fix.has_no_forecast()) out.push_back(fix.no_forecast());
  return out;
}

}  // namespace idlescope::report
