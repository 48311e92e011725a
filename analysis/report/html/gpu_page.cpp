// Page 4: kernels, copies, and calls that make the CPU wait.
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

// The analyzer's label in words.
std::string kernel_note(const Page& page, const std::string& label) {
  if (label == "tiny") return page.words(messages::kKernelTiny);
  if (label == "underfilled") return page.words(messages::kKernelUnderfilled);
  if (label == "tail") return page.words(messages::kKernelTail);
  if (label == "fp32-gemm") return page.words(messages::kKernelFp32);
  if (label == "unrated") return page.words(messages::kKernelUnrated);
  return label;
}

}  // namespace

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
  // Without steps the numbers are of the whole recording, and so are their names.
  const bool whole = report.step().window_only();
  const auto* how_often = whole ? &messages::kColCount : &messages::kColCountPerStep;
  const auto* copies_header = whole ? &messages::kColCount : &messages::kColCopiesPerStep;
  const auto* time_header = whole ? &messages::kColTotal : &messages::kColPerStep;
  const auto* bytes_header = whole ? &messages::kColBytesTotal : &messages::kColBytes;
  if (!report.kernels().empty()) {
    page->heading(messages::kGpuKernels);
    page->note(messages::kGpuFillNote);
    page->html.empty("input", {{"type", "search"},
                               {"class", "filter"},
                               {"hidden", ""},
                               {"placeholder", page->words(messages::kGpuFilter)},
                               {"aria-label", page->words(messages::kGpuFilter)}});
    Table table(page,
                {&messages::kColKernel, how_often, time_header, &messages::kColShare,
                 &messages::kColFill, &messages::kColNote},
                true);
    for (int i = 0; i < std::min(kMostRows, report.kernels_size()); ++i) {
      const KernelSummary& kernel = report.kernels(i);
      const double share = static_cast<double>(kernel.total_ns()) / steps / unit;
      table.row({named(kernel.name()),
                 number_cell(decimal(static_cast<double>(kernel.count()) / steps, 1),
                             static_cast<double>(kernel.count()) / steps),
                 time_cell(per_step(kernel.total_ns())), number_cell(percent(share), share, share),
                 kernel.fill() > 0
                     ? number_cell(percent(kernel.fill()), kernel.fill(), kernel.fill())
                     : number_cell("", -1),
                 word(kernel_note(*page, kernel.label()))});
    }
    table.end(kRowsAtFirst);
  }
  if (!report.copies().empty()) {
    page->heading(messages::kGpuCopies);
    Table table(page,
                {&messages::kColPath, copies_header, bytes_header, &messages::kColRate, time_header,
                 &messages::kColWaited},
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
  if (!report.collectives().empty()) {
    page->heading(messages::kGpuCollectives);
    page->note(messages::kGpuCollectivesNote);
    if (report.collectives(0).one_rank()) page->note(messages::kGpuCollectivesOneRank);
    Table table(page,
                {&messages::kColWhat, &messages::kColRanks, how_often, bytes_header,
                 &messages::kColRate, &messages::kColBus, time_header},
                true);
    for (const CollectiveSummary& one : report.collectives()) {
      table.row({word(one.name()), number_cell(count(one.ranks()), one.ranks()),
                 number_cell(decimal(static_cast<double>(one.count()) / steps, 1),
                             static_cast<double>(one.count()) / steps),
                 number_cell(bytes(static_cast<uint64_t>(static_cast<double>(one.bytes()) / steps)),
                             static_cast<double>(one.bytes())),
                 number_cell(decimal(one.alg_gb_per_s(), 1), one.alg_gb_per_s()),
                 number_cell(decimal(one.bus_gb_per_s(), 1), one.bus_gb_per_s()),
                 time_cell(per_step(one.transfer_ns()))});
    }
    table.end();
  }
  if (!report.calls().empty()) {
    page->heading(messages::kGpuCalls);
    page->note(messages::kGpuCallsNote);
    Table table(page, {&messages::kColCall, how_often, &messages::kColHost, &messages::kColCost},
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

}  // namespace idlescope::report
