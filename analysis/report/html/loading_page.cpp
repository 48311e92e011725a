// Page 3: how batches are made and what limits it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/html/page_parts.h"
#include "analysis/report/html/table.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// Share bars of a batch's preparation: computing, asleep, waiting for a core, collate.
void fetch_split(Page* page) {
  const LoaderSummary& loader = page->report.loader();
  if (loader.fetch_mean_ns() <= 0) return;
  page->heading(messages::kLoadingFetch);
  Table table(page, {&messages::kColWhat, &messages::kFactBatch, &messages::kColTime});
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

}  // namespace idlescope::report
