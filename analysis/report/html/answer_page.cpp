// Page 1, the whole first screen: verdict, one bar, at most three fixes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/fix_words.h"
#include "analysis/report/html/page_parts.h"
#include "analysis/report/layout.h"
#include "analysis/report/numbers.h"
#include "analysis/report/step_rows.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

const messages::Message& row_name(const StepRow& row) {
  return row.verdict == VERDICT_UNSPECIFIED ? messages::kRowOther : cause_words(row.verdict);
}

void verdict(Page* page) {
  const Report& report = page->report;
  page->html.open("header", {{"class", "verdict"}});
  page->html.open("h1").text(report.sentences().empty() ? "" : page->words(report.sentences(0)));
  const char* state = report.certainty() == SURE     ? "sure"
                      : report.certainty() == LIKELY ? "likely"
                                                     : "open";
  page->html.text(" ").element("span", {{"class", fmt::format("certainty {}", state)}},
                               page->words(certainty_words(report.certainty())));
  page->html.close();
  std::string lead;
  for (int i = 1; i < report.sentences_size(); ++i) {
    if (report.sentences(i).id() == messages::kNvmlUtilization.id) continue;  // drawn below
    if (!lead.empty() && page->language == Language::kEnglish) lead += ' ';
    lead += page->words(report.sentences(i));
  }
  if (!lead.empty()) page->html.element("p", {{"class", "lead"}}, lead);
  page->html.close();
}

void bar(Page* page) {
  const StepRows rows = step_rows(page->report);
  if (rows.rows.empty()) return;
  const TimeScale scale(rows.total_ns);
  const std::string total = scale.with_unit(rows.total_ns);
  page->html.open("figure", {{"class", "step-bar"}});
  page->html.element("figcaption", {},
                     rows.window ? page->words(messages::kAnswerBarWindow, {{"window", total}})
                                 : page->words(messages::kAnswerBar, {{"step", total}}));
  page->html.open("div", {{"class", "bar"}});
  std::vector<const StepRow*> small;
  for (const StepRow& row : rows.rows) {
    if (row.ns <= 0) continue;
    const double share = static_cast<double>(row.ns) / static_cast<double>(rows.total_ns);
    // Too narrow for its name at full width: named below the bar. 0.0075 of the bar a column.
    const double room =
        std::max(0.1, 0.02 + 0.0075 * static_cast<double>(columns(page->words(row_name(row)))));
    const bool narrow = share < room;
    if (narrow) small.push_back(&row);
    const int gap = longest_gap(page->report, row.verdict);
    const std::string style = fmt::format("flex:{:.4f} 0 0", share * 100);
    const std::string kind =
        fmt::format("segment {}{}", colour_class(row.verdict), narrow ? " narrow" : "");
    const std::string time = localized(scale.with_unit(row.ns), page->language);
    const std::string title =
        fmt::format("{} {} ({})", page->words(row_name(row)), time, percent(share));
    if (gap >= 0) {
      page->html.open("a", {{"class", kind},
                            {"style", style},
                            {"title", title},
                            {"href", fmt::format("#gap={}", gap)}});
    } else {
      page->html.open("div", {{"class", kind}, {"style", style}, {"title", title}});
    }
    page->html.element("b", {}, page->words(row_name(row)));
    page->html.element("span", {}, time);
    page->html.close();
  }
  page->html.close();
  if (!small.empty()) {
    page->html.open("ul", {{"class", "narrow-names"}});
    for (const StepRow* row : small) {
      page->html.open("li");
      page->html.element("i", {{"class", colour_class(row->verdict)}}, "");
      page->html.text(" " + page->words(row_name(*row)) + " " +
                      localized(scale.with_unit(row->ns), page->language));
      page->html.close();
    }
    page->html.close();
  }
  page->html.close();
}

void meters(Page* page) {
  const StepSummary& step = page->report.step();
  if (step.nvml_utilization() <= 0 || page->report.leaves().empty()) return;
  const auto meter = [&](const messages::Message& name, double share, const char* kind) {
    page->html.open("div", {{"class", fmt::format("meter {}", kind)}});
    page->html.element("span", {}, page->words(name));
    page->html.element("b", {}, percent(share));
    page->html.open("i");
    page->html.element(
        "i", {{"style", fmt::format("width:{:.1f}%", 100 * std::clamp(share, 0.0, 1.0))}}, "");
    page->html.close().close();
  };
  page->html.open("div", {{"class", "meters"}});
  meter(messages::kAnswerNvml, step.nvml_utilization(), "nvml");
  meter(messages::kAnswerBusy, step.busy_share(), "busy");
  page->html.close();
}

// Dot and whisker from 1x to the largest forecast of the page.
void whisker(const Forecast& forecast, double right, Page* page) {
  const double width = 240;
  const auto x = [&](double factor) {
    return fmt::format(
        "{:.1f}",
        8 + (width - 16) * std::clamp((factor - 1) / std::max(0.01, right - 1), 0.0, 1.0));
  };
  page->html.open("svg",
                  {{"class", "whisker"}, {"viewBox", "0 0 240 24"}, {"aria-hidden", "true"}});
  page->html.element(
      "line", {{"x1", "8"}, {"x2", "232"}, {"y1", "18"}, {"y2", "18"}, {"class", "axis"}}, "");
  if (forecast.bound_only()) {
    page->html.element(
        "line",
        {{"x1", "8"}, {"x2", x(forecast.speedup())}, {"y1", "9"}, {"y2", "9"}, {"class", "bound"}},
        "");
  } else {
    page->html.element("line",
                       {{"x1", x(forecast.speedup_ci().low())},
                        {"x2", x(forecast.speedup_ci().high())},
                        {"y1", "9"},
                        {"y2", "9"},
                        {"class", "range"}},
                       "");
    page->html.element(
        "circle", {{"cx", x(forecast.speedup())}, {"cy", "9"}, {"r", "5"}, {"class", "dot"}}, "");
  }
  page->html.element("text", {{"x", "8"}, {"y", "16"}}, "1x");
  page->html.element("text", {{"x", "232"}, {"y", "16"}, {"text-anchor", "end"}}, speedup(right));
  page->html.close();
}

void copy_box(const std::string& code, Page* page) {
  page->html.open("div", {{"class", "code"}});
  page->html.element("code", {}, code);
  page->html.element("button", {{"type", "button"}, {"data-copy", code}},
                     page->words(messages::kCopyButton));
  page->html.close();
}

void fixes(Page* page) {
  const Report& report = page->report;
  if (report.fixes().empty() && report.fix_notes().empty()) return;
  page->html.open("div", {{"class", "fixes"}});
  page->html.element("h2", {}, page->words(messages::kAnswerFixes));
  double right = 1;
  for (const Fix& fix : report.fixes()) {
    if (!fix.has_forecast()) continue;
    right = std::max({right, fix.forecast().speedup(), fix.forecast().speedup_ci().high()});
  }
  if (!report.fixes().empty()) page->html.open("ol", {{"class", "cards"}});
  for (int i = 0; i < std::min(3, report.fixes_size()); ++i) {
    const Fix& fix = report.fixes(i);
    page->html.open("li", {{"class", fmt::format("card {}", colour_class(fix.addresses()))}});
    page->html.element("h3", {}, page->words(fix.text()));
    if (!fix.site().empty()) page->html.element("p", {{"class", "site"}}, fix.site());
    if (!fix.code().empty()) copy_box(fix.code(), page);
    std::string gain;
    for (const Text& sentence : gain_sentences(report, i)) gain += page->words(sentence);
    if (!gain.empty()) page->html.element("p", {{"class", "gain"}}, gain);
    if (fix.has_forecast() && right > 1) whisker(fix.forecast(), right, page);
    page->html.close();
  }
  if (!report.fixes().empty()) page->html.close();
  for (const Text& note : report.fix_notes())
    page->html.element("p", {{"class", "lead"}}, page->words(note));
  page->html.close();
}

void rest(Page* page) {
  const Report& report = page->report;
  page->html.open("div", {{"class", "rest"}});
  if (report.has_check()) {
    page->html.open("div").element("h2", {}, page->words(messages::kAnswerCheck));
    // The command has a box of its own, to copy it.
    std::string how = page->words(report.check());
    const size_t command = how.find(report.check_command());
    if (!report.check_command().empty() && command != how.npos) how.erase(command);
    if (!how.empty()) page->html.element("p", {}, how);
    if (!report.check_command().empty()) copy_box(report.check_command(), page);
    page->html.close();
  }
  if (!report.not_it().empty()) {
    page->html.open("div").element("h2", {}, page->words(messages::kAnswerNotIt));
    for (const NotIt& not_it : report.not_it())
      page->html.element("p", {}, page->words(not_it.text()));
    page->html.close();
  }
  page->html.open("div").element("h2", {}, page->words(messages::kAnswerLimits));
  for (const Text& limit : report.limits()) page->html.element("p", {}, page->words(limit));
  page->html.close().close();
}

}  // namespace

std::string colour_class(Verdict verdict) {
  if (verdict == VERDICT_UNSPECIFIED) return "c-other";
  std::string name = Verdict_Name(verdict);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c == '_' ? '-' : static_cast<char>(c + ('a' - 'A')); });
  return "c-" + name;
}

int longest_gap(const Report& report, Verdict verdict) {
  int longest = -1;
  for (int i = 0; i < report.gaps_size(); ++i) {
    const Gap& gap = report.gaps(i);
    if (verdict_of(gap.top_leaf()) != verdict) continue;
    if (longest < 0 || gap.end_ns() - gap.begin_ns() >
                           report.gaps(longest).end_ns() - report.gaps(longest).begin_ns()) {
      longest = i;
    }
  }
  return longest;
}

void answer_page(Page* page) {
  page->html.open("section", {{"id", "answer"}});
  verdict(page);
  bar(page);
  meters(page);
  fixes(page);
  rest(page);
  page->html.close();
}

}  // namespace idlescope::report
