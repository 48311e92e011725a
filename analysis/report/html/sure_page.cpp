// Page 6: what was recorded and what not, and what the numbers rest on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/html/page_parts.h"
#include "analysis/report/html/table.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

std::string joined(const google::protobuf::RepeatedPtrField<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

// "KIND_CALL_LAUNCH" -> "call launch".
std::string kinds(const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    out += out.empty() ? "" : ", ";
    for (const char c : name.compare(0, 5, "KIND_") == 0 ? name.substr(5) : name) {
      out += c == '_' ? ' ' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
  }
  return out;
}

std::string anchor_words(const Page& page, const std::string& anchor) {
  if (anchor == "marks") return page.words(messages::kAnchorMarks);
  if (anchor == "loader") return page.words(messages::kAnchorLoader);
  if (anchor == "optimizer") return page.words(messages::kAnchorOptimizer);
  return page.words(messages::kAnchorOther, {{"anchor", anchor}});
}

}  // namespace

void sure_page(Page* page) {
  const Report& report = page->report;
  const EvidenceSummary& evidence = report.evidence();
  const std::string none = page->words(messages::kSureNone);
  page->html.open("section", {{"id", "sure"}});
  page->html.element("h1", {}, page->words(messages::kPageSure));
  page->html.open("table", {{"class", "facts"}}).open("tbody");
  const std::string recorded = kinds(evidence.recorded_kinds());
  const std::string missing = kinds(evidence.missing_kinds());
  if (!report.step().window_only()) {
    fact(page, messages::kSureSteady, count(report.step().steady_steps()));
    fact(page, messages::kSureSteps, anchor_words(*page, report.step().anchor()));
    if (report.step().has_mean_ci()) {
      const TimeScale scale(report.step().mean_ns());
      fact(page, messages::kSureInterval,
           scale.number(std::llround(report.step().mean_ci().low())) + " - " +
               scale.with_unit(std::llround(report.step().mean_ci().high())));
    }
  }
  if (!report.leaves().empty()) {
    fact(page, messages::kSureUnexplained, percent(evidence.unknown_of_step()));
    fact(page, messages::kSureGrades,
         page->words(messages::kSureGradesValue, {{"a", percent(evidence.grade_a())},
                                                  {"b", percent(evidence.grade_b())},
                                                  {"c", percent(evidence.grade_c())}}));
    fact(page, messages::kSureJoin, percent(evidence.join_rate()));
  }
  fact(page, messages::kSureLost,
       evidence.dropped() == 0
           ? none
           : page->words(messages::kSureLostValue, {{"count", count(evidence.dropped())},
                                                    {"share", percent(evidence.dropped_share())}}));
  std::string cost = page->words(messages::kSureUnknown);
  if (report.cost().share_of_run() >= 0 && report.cost().slowdown_in_windows() > 0) {
    cost = page->words(
        messages::kSureCostValue,
        {{"share", percent(report.cost().share_of_run())},
         {"slowdown", percent(std::max(0.0, report.cost().slowdown_in_windows() - 1))}});
  } else if (report.cost().slowdown_in_windows() > 0) {
    cost = page->words(
        messages::kSureCostSlowdown,
        {{"slowdown", percent(std::max(0.0, report.cost().slowdown_in_windows() - 1))}});
  }
  fact(page, messages::kSureCost, cost);
  if (evidence.windows() > 0) fact(page, messages::kSureWindows, count(evidence.windows()));
  fact(page, messages::kSureClock,
       evidence.clock_shift_ns() == 0 ? none : duration(evidence.clock_shift_ns()));
  if (!recorded.empty()) fact(page, messages::kSureRecorded, recorded);
  fact(page, messages::kSureMissing, missing.empty() ? none : missing);
  for (const DeviceSummary& device : report.devices())
    fact(page, messages::kSureDevice, device.name());
  if (report.source().has_chosen()) {
    const ProcessInfo& process = report.source().chosen();
    // An imported file may know neither host nor program.
    if (!process.host().empty() && !process.executable().empty()) {
      fact(page, messages::kSureProcess,
           page->words(messages::kSureProcessValue, {{"pid", std::to_string(process.pid())},
                                                     {"host", process.host()},
                                                     {"executable", process.executable()}}));
    } else {
      fact(page, messages::kSureProcess, "pid " + std::to_string(process.pid()));
    }
    std::string versions = report.tool();
    if (!process.torch_version().empty()) versions += ", torch " + process.torch_version();
    if (!process.python_version().empty()) versions += ", Python " + process.python_version();
    fact(page, messages::kSureVersions, versions);
  } else {
    fact(page, messages::kSureVersions, report.tool());
  }
  if (!report.source().command().empty())
    fact(page, messages::kSureCommand, report.source().command());
  fact(page, messages::kSureFile, joined(report.source().path()));
  if (report.cost().trace_bytes() > 0)
    fact(page, messages::kSureSize, bytes(report.cost().trace_bytes()));
  page->html.close().close();

  page->heading(messages::kSureQuestions);
  page->html.open("ul");
  for (const Abstention& abstention : report.abstentions()) {
    page->html.element("li", {}, page->words(abstention.text()));
  }
  if (report.abstentions().empty()) page->html.element("li", {}, none);
  page->html.close();
  if (!report.anomalies().empty()) {
    page->heading(messages::kSureOdd);
    page->html.open("ul");
    for (const Anomaly& anomaly : report.anomalies()) {
      page->html.element(
          "li", {},
          fmt::format("[{}] {} ({}x)", anomaly.id(), page->words(anomaly.text()), anomaly.count()));
    }
    page->html.close();
  }
  page->html.close();
}

}  // namespace idlescope::report
