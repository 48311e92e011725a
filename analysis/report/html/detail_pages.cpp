// Pages 2 to 6: tables that work without the script, and places for its drawings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/html/page_parts.h"
#include "analysis/report/html/table.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

constexpr int kMostRows = 60;  // of one table; what comes after adds up to little

double steps_of(const Report& report) {
  return report.step().window_only()
             ? 1.0
             : static_cast<double>(std::max<uint64_t>(1, report.step().steady_steps()));
}

double unit_of(const Report& report) {
  if (!report.step().window_only() && report.step().mean_ns() > 0) {
    return static_cast<double>(report.step().mean_ns());
  }
  double sum = 0;
  for (const LeafTime& leaf : report.leaves()) sum += static_cast<double>(leaf.total_ns());
  return std::max(1.0, sum);
}

void drawing(Page* page, const char* id) {
  page->html.open("div", {{"class", "drawing"}, {"id", id}});
  page->html.open("noscript")
      .element("p", {{"class", "note"}}, page->words(messages::kNeedsScript))
      .close();
  page->html.close();
}

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

std::string grades(const Gap& gap) {
  int64_t ns[3] = {0, 0, 0};
  for (const LeafTime& piece : gap.pieces()) {
    ns[0] += piece.grade_a_ns();
    ns[1] += piece.grade_b_ns();
    ns[2] += piece.grade_c_ns();
  }
  const int64_t total = ns[0] + ns[1] + ns[2];
  if (total <= 0) return "";
  const int best = static_cast<int>(std::max_element(ns, ns + 3) - ns);
  return std::string(1, static_cast<char>('A' + best));
}

void gap_table(Page* page) {
  const Report& report = page->report;
  if (report.gaps().empty()) return;
  page->heading(messages::kStepGaps);
  Table table(page, {&messages::kColLength, &messages::kColCause, &messages::kColWhy,
                     &messages::kColStep, &messages::kColEndedBy, &messages::kColEvidence});
  for (int i = 0; i < report.gaps_size(); ++i) {
    const Gap& gap = report.gaps(i);
    table.row(
        {time_cell(gap.end_ns() - gap.begin_ns()),
         word(page->words(leaf_words(gap.top_leaf())),
              "cause " + colour_class(verdict_of(gap.top_leaf()))),
         word(page->words(gap.text())), word(gap.step() >= 0 ? std::to_string(gap.step()) : ""),
         word(gap.ended_by(), "name"), word(grades(gap))},
        fmt::format("gap={}", i));
  }
  table.end();
}

// Share bars of a batch's preparation: computing, asleep, waiting for a core, collate.
void fetch_split(Page* page) {
  const LoaderSummary& loader = page->report.loader();
  if (loader.fetch_mean_ns() <= 0) return;
  page->heading(messages::kLoadingFetch);
  Table table(page, {&messages::kColWhat, &messages::kFactBatch, &messages::kColEach});
  const auto part = [&](const messages::Message& name, double share) {
    if (share <= 0) return;
    const auto ns = static_cast<int64_t>(share * static_cast<double>(loader.fetch_mean_ns()));
    table.row({word(page->words(name)), number_cell(percent(share), share, share), time_cell(ns)});
  };
  part(messages::kPartCpu, loader.fetch_cpu_share());
  part(messages::kPartBlocked, loader.fetch_blocked_share());
  part(messages::kPartQueue, loader.fetch_run_queue_share());
  part(messages::kPartCollate,
       static_cast<double>(loader.collate_mean_ns()) / static_cast<double>(loader.fetch_mean_ns()));
  for (const HotFrame& frame : loader.frames()) {
    table.row({word(frame.site(), "name"),
               number_cell(percent(frame.share()), frame.share(), frame.share()),
               time_cell(static_cast<int64_t>(frame.share() *
                                              static_cast<double>(loader.fetch_mean_ns())))});
  }
  table.end();
}

void worker_curve(Page* page) {
  const Report& report = page->report;
  page->heading(messages::kLoadingCurve);
  if (report.worker_curve().empty()) {
    page->note(messages::kLoadingCurveNone);
    return;
  }
  drawing(page, "curve");
  Table table(page, {&messages::kColWorkers, &messages::kColStepTime, &messages::kColRange});
  for (const SpeedCurvePoint& point : report.worker_curve()) {
    const TimeScale scale(static_cast<int64_t>(point.ci().high()));
    table.row({number_cell(std::to_string(point.num_workers()) +
                               (point.now() ? " (" + page->words(messages::kAxisNow) + ")" : ""),
                           point.num_workers()),
               time_cell(point.step_ns()),
               word(point.has_ci() ? scale.number(static_cast<int64_t>(point.ci().low())) + " - " +
                                         scale.with_unit(static_cast<int64_t>(point.ci().high()))
                                   : "")});
  }
  table.end();
}

}  // namespace

void step_page(Page* page) {
  page->html.open("section", {{"id", "step"}});
  page->html.element("h1", {}, page->words(messages::kPageStep));
  if (page->report.timelines().empty()) {
    page->note(messages::kStepNone);
  } else {
    page->note(messages::kStepIntro);
    drawing(page, "timeline");
    page->html.element("p", {{"id", "gap-sentence"}, {"class", "lead"}, {"aria-live", "polite"}},
                       "");
    page->note(messages::kStepHow);
  }
  gap_table(page);
  page->html.close();
}

void loading_page(Page* page) {
  const LoaderSummary& loader = page->report.loader();
  page->html.open("section", {{"id", "loading"}});
  page->html.element("h1", {}, page->words(messages::kPageLoading));
  if (!loader.seen()) {
    page->note(messages::kLoadingNone);
    page->html.close();
    return;
  }
  page->note(messages::kLoadingIntro);
  page->html.open("table", {{"class", "facts"}}).open("tbody");
  const auto yes = [&](bool value) {
    return page->words(value ? messages::kFactYes : messages::kFactNo);
  };
  fact(page, messages::kFactLimiter, page->words(limiter_words(page->report.limiter())));
  if (!loader.site().empty()) fact(page, messages::kFactSite, loader.site());
  fact(page, messages::kFactWorkers,
       loader.num_workers() < 0 ? page->words(messages::kSureUnknown)
                                : std::to_string(loader.num_workers()));
  if (loader.num_workers() > 0) {
    fact(page, messages::kFactPrefetch, std::to_string(loader.prefetch_factor()));
    fact(page, messages::kFactPersistent, yes(loader.persistent_workers()));
    if (!loader.start_method().empty()) fact(page, messages::kFactStart, loader.start_method());
    if (loader.worker_busy_share() > 0)
      fact(page, messages::kFactBusy, percent(loader.worker_busy_share()));
    fact(page, messages::kFactReady, decimal(loader.mean_ready(), 1));
  }
  fact(page, messages::kFactPin, yes(loader.pin_memory()));
  if (loader.fetch_mean_ns() > 0)
    fact(page, messages::kFactBatch, duration(loader.fetch_mean_ns()));
  if (loader.next_mean_ns() > 0) fact(page, messages::kFactNext, duration(loader.next_mean_ns()));
  if (loader.cores() > 0 && loader.cores_busy() > 0) {
    fact(page, messages::kFactCores,
         page->words(messages::kFactCoresValue, {{"busy", decimal(loader.cores_busy(), 1)},
                                                 {"cores", decimal(loader.cores(), 0)}}));
  }
  page->html.close().close();
  bool lanes = false;
  for (const TypicalStep& timeline : page->report.timelines())
    lanes |= timeline.which() == "loader";
  if (lanes) {
    page->heading(messages::kLoadingLanes);
    drawing(page, "loader-lanes");
  }
  fetch_split(page);
  worker_curve(page);
  page->html.close();
}

void gpu_page(Page* page) {
  const Report& report = page->report;
  const double steps = steps_of(report);
  const double unit = unit_of(report);
  page->html.open("section", {{"id", "gpu"}});
  page->html.element("h1", {}, page->words(messages::kPageGpu));
  if (report.kernels().empty() && report.copies().empty()) page->note(messages::kGpuNone);
  const auto per_step = [&](int64_t ns) {
    return static_cast<int64_t>(static_cast<double>(ns) / steps);
  };
  if (!report.kernels().empty()) {
    page->heading(messages::kGpuKernels);
    page->note(messages::kGpuFillNote);
    page->html.empty("input", {{"type", "search"},
                               {"class", "filter"},
                               {"hidden", ""},
                               {"placeholder", page->words(messages::kGpuFilter)},
                               {"aria-label", page->words(messages::kGpuFilter)}});
    Table table(page,
                {&messages::kColKernel, &messages::kColCount, &messages::kColPerStep,
                 &messages::kColShare, &messages::kColFill, &messages::kColLabel},
                true);
    for (int i = 0; i < std::min(kMostRows, report.kernels_size()); ++i) {
      const KernelSummary& kernel = report.kernels(i);
      const double share = static_cast<double>(kernel.total_ns()) / steps / unit;
      table.row({word(kernel.name(), "name"),
                 number_cell(decimal(static_cast<double>(kernel.count()) / steps, 1),
                             static_cast<double>(kernel.count()) / steps),
                 time_cell(per_step(kernel.total_ns())), number_cell(percent(share), share, share),
                 kernel.fill() > 0
                     ? number_cell(percent(kernel.fill()), kernel.fill(), kernel.fill())
                     : number_cell("", -1),
                 word(kernel.label())});
    }
    table.end();
  }
  if (!report.copies().empty()) {
    page->heading(messages::kGpuCopies);
    Table table(page,
                {&messages::kColPath, &messages::kColCount, &messages::kColBytes,
                 &messages::kColRate, &messages::kColPerStep, &messages::kColWaited},
                true);
    for (const CopySummary& copy : report.copies()) {
      table.row(
          {word(copy.path()),
           number_cell(decimal(static_cast<double>(copy.count()) / steps, 1),
                       static_cast<double>(copy.count()) / steps),
           number_cell(bytes(static_cast<uint64_t>(static_cast<double>(copy.bytes()) / steps)),
                       static_cast<double>(copy.bytes())),
           number_cell(decimal(copy.gb_per_s(), 1), copy.gb_per_s()),
           time_cell(per_step(copy.total_ns())), time_cell(per_step(copy.exposed_ns()))});
    }
    table.end();
  }
  if (!report.calls().empty()) {
    page->heading(messages::kGpuCalls);
    page->note(messages::kGpuCallsNote);
    Table table(
        page, {&messages::kColCall, &messages::kColCount, &messages::kColHost, &messages::kColCost},
        true);
    for (int i = 0; i < std::min(kMostRows, report.calls_size()); ++i) {
      const CallSummary& call = report.calls(i);
      const double host = static_cast<double>(call.host_ns()) / steps;
      const double cost = static_cast<double>(call.cost_ns()) / steps;
      table.row({word(call.name(), "name"),
                 number_cell(decimal(static_cast<double>(call.count()) / steps, 1),
                             static_cast<double>(call.count()) / steps),
                 number_cell(duration(per_step(call.host_ns())), host, host / unit),
                 number_cell(duration(per_step(call.cost_ns())), cost, cost / unit)});
    }
    table.end();
  }
  page->html.close();
}

void run_page(Page* page) {
  const Report& report = page->report;
  const RunSummary& run = report.run();
  page->html.open("section", {{"id", "run"}});
  page->html.element("h1", {}, page->words(messages::kPageRun));
  if (report.step_points().empty()) {
    page->note(messages::kRunNone);
  } else {
    page->note(messages::kRunIntro);
    drawing(page, "dots");
    page->note(messages::kRunDotsNote);
  }
  page->html.open("table", {{"class", "facts"}}).open("tbody");
  if (run.mean_step_ns() > 0) {
    const TimeScale scale(std::max(run.mean_step_ns(), run.median_step_ns()));
    fact(page, messages::kFactMean, scale.with_unit(run.mean_step_ns()));
    fact(page, messages::kFactMedian, scale.with_unit(run.median_step_ns()));
  }
  if (report.step().unprofiled_mean_ns() > 0) {
    fact(page, messages::kFactOutside, duration(report.step().unprofiled_mean_ns()));
  }
  if (run.startup_ns() > 0) fact(page, messages::kFactStartup, duration(run.startup_ns()));
  if (run.epochs() > 0) fact(page, messages::kFactEpochs, count(run.epochs()));
  if (run.wall_ns() > 0) fact(page, messages::kFactWall, duration(run.wall_ns()));
  page->html.close().close();

  page->heading(messages::kRunStalls);
  if (report.stalls().empty()) {
    page->note(messages::kRunNoStalls);
  } else {
    Table table(page, {&messages::kColWhat, &messages::kColCount, &messages::kColEvery,
                       &messages::kColEach, &messages::kColTotal, &messages::kColOfRun});
    for (const RunStall& stall : report.stalls()) {
      table.row(
          {word(page->words(leaf_words(stall.leaf())), "cause " + colour_class(stall.verdict())),
           number_cell(count(stall.count()), static_cast<double>(stall.count())),
           word(stall.period_steps() > 0 ? decimal(stall.period_steps(), 0) : ""),
           time_cell(stall.mean_ns()), time_cell(stall.total_ns()),
           number_cell(percent(stall.share_of_run()), stall.share_of_run(), stall.share_of_run())});
    }
    table.end();
  }
  if (report.phases_size() > 1) {
    page->heading(messages::kRunPhases);
    Table table(page, {&messages::kColWhat, &messages::kColSteps, &messages::kColEach,
                       &messages::kColTotal});
    for (const Phase& phase : report.phases()) {
      table.row({word(phase.name()),
                 number_cell(count(phase.steps()), static_cast<double>(phase.steps())),
                 time_cell(phase.mean_step_ns()), time_cell(phase.total_ns())});
    }
    table.end();
  }
  if (report.ranks_size() > 1) {
    page->heading(messages::kRunRanks);
    Table table(page,
                {&messages::kColRank, &messages::kColHostName, &messages::kColVerdict,
                 &messages::kColStepTime, &messages::kColBusy, &messages::kColWait,
                 &messages::kColTransfer, &messages::kColLast},
                true);
    for (const RankSummary& rank : report.ranks()) {
      table.row(
          {number_cell(std::to_string(rank.rank()), rank.rank()), word(rank.host()),
           word(page->words(row_words(rank.verdict())), "cause " + colour_class(rank.verdict())),
           time_cell(rank.mean_step_ns()),
           number_cell(percent(rank.busy_share()), rank.busy_share(), rank.busy_share()),
           time_cell(rank.comm_wait_ns()), time_cell(rank.comm_transfer_ns()),
           number_cell(percent(rank.last_share()), rank.last_share(), rank.last_share())});
    }
    table.end();
  }
  page->html.close();
}

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
    fact(page, messages::kSureSteps, report.step().anchor());
    if (report.step().has_mean_ci()) {
      const TimeScale scale(report.step().mean_ns());
      fact(page, messages::kSureInterval,
           scale.number(std::llround(report.step().mean_ci().low())) + " - " +
               scale.with_unit(std::llround(report.step().mean_ci().high())));
    }
  }
  fact(page, messages::kSureUnexplained, percent(evidence.unknown_of_step()));
  fact(page, messages::kSureGrades,
       page->words(messages::kSureGradesValue, {{"a", percent(evidence.grade_a())},
                                                {"b", percent(evidence.grade_b())},
                                                {"c", percent(evidence.grade_c())}}));
  if (!report.leaves().empty()) fact(page, messages::kSureJoin, percent(evidence.join_rate()));
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
  fact(page, messages::kSureClock, duration(evidence.clock_shift_ns()));
  if (!recorded.empty()) fact(page, messages::kSureRecorded, recorded);
  fact(page, messages::kSureMissing, missing.empty() ? none : missing);
  for (const DeviceSummary& device : report.devices())
    fact(page, messages::kSureDevice, device.name());
  if (report.source().has_chosen()) {
    const ProcessInfo& process = report.source().chosen();
    fact(page, messages::kSureProcess,
         page->words(messages::kSureProcessValue, {{"pid", std::to_string(process.pid())},
                                                   {"host", process.host()},
                                                   {"executable", process.executable()}}));
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
