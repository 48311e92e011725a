#include "analysis/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/report/layout.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// Two-sided 95 % quantile of Student's t for `degrees` of freedom.
double student_t(size_t degrees) {
  static constexpr double kTable[] = {0,    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36,
                                      2.31, 2.26,  2.23, 2.20, 2.18, 2.16, 2.14, 2.13};
  return degrees < std::size(kTable) ? kTable[degrees] : 1.96 + 2.6 / static_cast<double>(degrees);
}

// Steps outside windows are not slowed by the recording.
double step_ns(const Report& report) {
  if (report.step().unprofiled_mean_ns() > 0)
    return static_cast<double>(report.step().unprofiled_mean_ns());
  if (report.step().mean_ns() > 0 && !report.step().window_only())
    return static_cast<double>(report.step().mean_ns());
  return static_cast<double>(report.run().mean_step_ns());
}

Comparison::Side side_of(const std::vector<Report>& runs) {
  Comparison::Side side;
  side.runs = runs.size();
  side.verdict = runs[0].verdict();
  side.certainty = runs[0].certainty();
  std::vector<double> steps;
  for (const Report& run : runs) {
    side.steps += run.step().steady_steps();
    side.verdicts_differ |= run.verdict() != side.verdict;
    if (step_ns(run) > 0) steps.push_back(step_ns(run));
  }
  if (steps.empty()) return side;
  for (const double step : steps) side.step_ns += step / static_cast<double>(steps.size());
  side.low_ns = side.high_ns = side.step_ns;
  double half = 0;
  if (steps.size() > 1) {
    // Runs vary more than steps of one run (clocks, neighbours, caches): they decide.
    double squares = 0;
    for (const double step : steps) squares += (step - side.step_ns) * (step - side.step_ns);
    const double n = static_cast<double>(steps.size());
    half = student_t(steps.size() - 1) * std::sqrt(squares / (n - 1) / n);
  } else if (runs[0].step().has_mean_ci() && runs[0].step().mean_ns() > 0) {
    // The interval was made inside windows; its relative width is used for the plain step.
    const Interval& ci = runs[0].step().mean_ci();
    half =
        0.5 * (ci.high() - ci.low()) / static_cast<double>(runs[0].step().mean_ns()) * side.step_ns;
  }
  side.low_ns = std::max(0.0, side.step_ns - half);
  side.high_ns = side.step_ns + half;
  return side;
}

std::map<Verdict, double> per_step(const std::vector<Report>& runs) {
  std::map<Verdict, double> sum;
  for (const Report& run : runs) {
    if (run.step().window_only()) continue;
    for (const LeafTime& leaf : run.leaves()) {
      sum[verdict_of(leaf.leaf())] +=
          static_cast<double>(leaf.per_step_ns()) / static_cast<double>(runs.size());
    }
  }
  return sum;
}

}  // namespace

Comparison compare(const std::vector<Report>& before, const std::vector<Report>& after) {
  Comparison out;
  out.before = side_of(before);
  out.after = side_of(after);
  const std::map<Verdict, double> old_parts = per_step(before);
  const std::map<Verdict, double> new_parts = per_step(after);
  std::map<Verdict, Comparison::Row> rows;
  for (const auto& [verdict, ns] : old_parts) rows[verdict].old_ns = ns;
  for (const auto& [verdict, ns] : new_parts) rows[verdict].new_ns = ns;
  for (auto& [verdict, row] : rows) {
    row.verdict = verdict;
    out.rows.push_back(row);
  }
  std::stable_sort(out.rows.begin(), out.rows.end(), [](const auto& a, const auto& b) {
    if ((a.verdict == COMPUTE) != (b.verdict == COMPUTE)) return a.verdict == COMPUTE;
    return std::abs(a.old_ns - a.new_ns) > std::abs(b.old_ns - b.new_ns);
  });
  for (const Fix& fix : before[0].fixes()) {
    if (!fix.has_forecast() || fix.forecast().bound_only() || fix.forecast().per_epoch()) continue;
    out.forecast_step_ns = static_cast<double>(fix.forecast().step_ns());
    out.forecast_low = fix.forecast().speedup_ci().low();
    out.forecast_high = fix.forecast().speedup_ci().high();
    out.forecast_fix = fix.text().text();
    break;
  }
  if (out.before.step_ns <= 0 || out.after.step_ns <= 0) {
    out.outcome = Comparison::Outcome::kNotComparable;
    return out;
  }
  out.speedup = out.before.step_ns / out.after.step_ns;
  const bool interval =
      out.before.high_ns > out.before.low_ns && out.after.high_ns > out.after.low_ns;
  if (!interval) {
    out.outcome = Comparison::Outcome::kUnclear;
    return out;
  }
  // Relative errors of a quotient of independent means add in squares.
  const double relative =
      std::hypot((out.before.high_ns - out.before.low_ns) / 2 / out.before.step_ns,
                 (out.after.high_ns - out.after.low_ns) / 2 / out.after.step_ns);
  out.speedup_low = out.speedup / (1 + relative);
  out.speedup_high = relative < 1 ? out.speedup / (1 - relative) : INFINITY;
  if (out.speedup_low > 1) {
    out.outcome = Comparison::Outcome::kFaster;
  } else if (out.speedup_high < 1) {
    out.outcome = Comparison::Outcome::kSlower;
  } else {
    out.outcome = Comparison::Outcome::kSame;
  }
  return out;
}

std::string render_comparison(const Comparison& comparison, const TextOptions& options) {
  const Language language = options.language;
  const auto words = [&](const messages::Message& message, const messages::Values& values = {}) {
    Say say(message);
    for (const auto& [name, value] : values) say.with(name, value);
    return render(static_cast<Text>(say), language);
  };
  std::string out;
  const auto paragraph = [&](const std::string& text) {
    for (const std::string& line : wrap(text, options.width)) out += line + "\n";
  };
  const Comparison::Side& before = comparison.before;
  const Comparison::Side& after = comparison.after;
  const TimeScale scale(std::llround(std::max(before.step_ns, after.step_ns)));
  const auto time = [&](double ns) { return scale.with_unit(std::llround(ns)); };
  using Outcome = Comparison::Outcome;
  switch (comparison.outcome) {
    case Outcome::kNotComparable:
      paragraph(words(messages::kCompareNoSteps));
      return out;
    case Outcome::kFaster:
    case Outcome::kSlower:
      paragraph(words(comparison.outcome == Outcome::kFaster ? messages::kCompareFaster
                                                             : messages::kCompareSlower,
                      {{"old", time(before.step_ns)},
                       {"new", time(after.step_ns)},
                       {"speedup", speedup(comparison.speedup)},
                       {"low", fmt::format("{:.2f}", comparison.speedup_low)},
                       {"high", fmt::format("{:.2f}", comparison.speedup_high)}}));
      break;
    case Outcome::kSame:
      paragraph(words(messages::kCompareSame,
                      {{"old", time(before.step_ns)},
                       {"new", time(after.step_ns)},
                       {"low", fmt::format("{:.2f}", comparison.speedup_low)},
                       {"high", fmt::format("{:.2f}", comparison.speedup_high)}}));
      break;
    case Outcome::kUnclear:
      paragraph(words(messages::kCompareUnclear, {{"old", time(before.step_ns)},
                                                  {"new", time(after.step_ns)},
                                                  {"speedup", speedup(comparison.speedup)}}));
      break;
  }
  if (before.runs == 1 || after.runs == 1) paragraph(words(messages::kCompareRepeat));
  if (comparison.forecast_step_ns > 0) {
    const bool inside = comparison.speedup >= comparison.forecast_low &&
                        comparison.speedup <= comparison.forecast_high;
    paragraph(words(messages::kCompareForecast, {{"fix", printable(comparison.forecast_fix)},
                                                 {"forecast", time(comparison.forecast_step_ns)},
                                                 {"new", time(after.step_ns)}}) +
              (language == Language::kEnglish ? " " : "") +
              words(inside ? messages::kCompareForecastHit : messages::kCompareForecastMiss));
  }
  const auto verdict = [&](const messages::Message& label, const Comparison::Side& side) {
    out += pad_right(render(label, language), 9) + render(verdict_words(side.verdict), language) +
           " (" + render(certainty_words(side.certainty), language) + ")\n";
    if (side.verdicts_differ)
      out += std::string(9, ' ') + words(messages::kCompareVerdictsDiffer) + "\n";
  };
  verdict(messages::kCompareBefore, before);
  verdict(messages::kCompareAfter, after);
  const size_t column = 12;
  out += std::string(11, ' ') + pad_left(render(messages::kCompareBefore, language), column) +
         pad_left(render(messages::kCompareAfter, language), column) +
         pad_left(render(messages::kCompareChange, language), column) + "\n";
  const auto row = [&](const std::string& name, double old_ns, double new_ns) {
    const double change = new_ns - old_ns;
    const std::string changed = scale.number(std::llround(change));
    out +=
        pad_right(name, 11) + pad_left(time(old_ns), column) + pad_left(time(new_ns), column) +
        pad_left((change > 0 && changed != "0" ? "+" : "") + changed + " " + scale.unit(), column) +
        "\n";
  };
  row(render(messages::kCompareStep, language), before.step_ns, after.step_ns);
  for (const Comparison::Row& part : comparison.rows) {
    const double larger = std::max(part.old_ns, part.new_ns);
    if (larger < 0.005 * std::max(before.step_ns, after.step_ns)) continue;
    row(render(row_words(part.verdict), language), part.old_ns, part.new_ns);
  }
  paragraph(words(messages::kCompareParts));
  return out;
}

}  // namespace idlescope::report
