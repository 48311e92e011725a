// Page 5: one dot a step, stalls, phases, ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/html/page_parts.h"
#include "analysis/report/html/table.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// The largest cause of a phase that is worth naming.
Verdict phase_waits_for(const Phase& phase) {
  for (const VerdictShare& share : phase.verdict_shares()) {
    if (share.verdict() != COMPUTE) {
      return share.share() >= 0.02 ? share.verdict() : VERDICT_UNSPECIFIED;
    }
  }
  return VERDICT_UNSPECIFIED;
}

}  // namespace

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
    const bool shades = std::any_of(report.step_points().begin(), report.step_points().end(),
                                    [](const StepPoint& p) { return p.window_id() == 0; });
    if (shades) page->note(messages::kRunDotsNote);
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
    page->note(messages::kRunStallsNote);
    Table table(page, {&messages::kColWhat, &messages::kColCount, &messages::kColEvery,
                       &messages::kColEach, &messages::kColTotal, &messages::kColOfRun});
    for (const RunStall& stall : report.stalls()) {
      table.row(
          {word(page->words(leaf_words(stall.leaf())), "cause " + colour_class(stall.verdict())),
           number_cell(count(stall.count()), static_cast<double>(stall.count())),
           word(stall.period_steps() > 0
                    ? page->words(messages::kEverySteps,
                                  {{"count", decimal(stall.period_steps(), 0)}})
                    : ""),
           time_cell(stall.mean_ns()), time_cell(stall.total_ns()),
           number_cell(percent(stall.share_of_run()), stall.share_of_run(), stall.share_of_run())});
    }
    table.end();
  }
  if (report.phases_size() > 1) {
    page->heading(messages::kRunPhases);
    Table table(page, {&messages::kColWhat, &messages::kColSteps, &messages::kColEach,
                       &messages::kColTotal, &messages::kColBusy, &messages::kColMostly});
    for (const Phase& phase : report.phases()) {
      const Verdict mostly = phase_waits_for(phase);
      table.row({word(page->words(phase.name() == "train" ? messages::kPhaseTrain
                                                          : messages::kPhaseEvaluation)),
                 number_cell(count(phase.steps()), static_cast<double>(phase.steps())),
                 time_cell(phase.mean_step_ns()), time_cell(phase.total_ns()),
                 phase.window_ns() > 0 ? number_cell(percent(phase.busy_share()),
                                                     phase.busy_share(), phase.busy_share())
                                       : number_cell("", -1),
                 mostly == VERDICT_UNSPECIFIED
                     ? word("")
                     : word(page->words(cause_words(mostly)), "cause " + colour_class(mostly))});
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
           word(page->words(cause_words(rank.verdict())), "cause " + colour_class(rank.verdict())),
           time_cell(rank.mean_step_ns()),
           number_cell(percent(rank.busy_share()), rank.busy_share(), rank.busy_share()),
           time_cell(rank.comm_wait_ns()), time_cell(rank.comm_transfer_ns()),
           number_cell(percent(rank.last_share()), rank.last_share(), rank.last_share())});
    }
    table.end();
  }
  page->html.close();
}

}  // namespace idlescope::report
