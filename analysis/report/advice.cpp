#include "analysis/report/advice.h"
#include "proto/messages.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace idlescope::report {

Fix* Advice::offer(std::string_view id, Verdict addresses, Text text, double cost_ns) {
  if (!context_.worthwhile(cost_ns)) return nullptr;
  for (const Fix& fix : report_->fixes()) {
    if (fix.id() == id) return nullptr;
  }
  Fix* fix = report_->add_fixes();
  fix->set_id(std::string(id));
  fix->set_addresses(addresses);
  *fix->mutable_text() = std::move(text);
  fix->set_ceiling_ns(std::llround(cost_ns));
  const double bound = context_.bound(cost_ns);
  fix->set_ceiling_speedup(bound);
  if (bound > 0) {
    *fix->mutable_no_forecast() = Say(messages::kNoForecastAtMost).with("speedup", speedup(bound));
  } else {
    *fix->mutable_no_forecast() = Say(messages::kNoForecast);
  }
  return fix;
}

void write_fixes(const Context& context, Report* report) {
  Advice advice(context, report);
  const diagnose::Diagnosis& d = context.d;
  if (d.verdict == CANNOT_TELL || !context.device || context.unit_ns <= 0) return;

  // The verdict first, then the others by what they cost.
  std::vector<std::pair<double, Verdict>> order;
  for (const Verdict verdict :
       {DATA, TRANSFER, LAUNCH, SYNC, HOST, ALLOC, COMPILE, PERIODIC, COMM}) {
    if (verdict != d.verdict) order.emplace_back(context.verdict_ns(verdict), verdict);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  order.insert(order.begin(), {0, d.verdict});
  for (const auto& [cost, verdict] : order) {
    if (verdict == DATA || verdict == STARTUP) {
      data_fixes(&advice);
    } else {
      device_fixes(verdict, &advice);
    }
  }

  const bool none = report->fixes().empty();
  if (none && (d.verdict == COMPUTE || d.verdict == STARTUP)) {
    *report->add_fix_notes() = Say(messages::kNoneWorth);
  }
  if (d.verdict == COMPUTE) {
    const double fp32 = context.device->compute_ns > 0
                            ? static_cast<double>(context.device->fp32_matrix_ns) /
                                  static_cast<double>(context.device->window_ns)
                            : 0;
    if (fp32 >= 0.05 && fp32 < 1) {
      *report->add_fix_notes() = Say(messages::kHintBf16)
                                     .with("share", percent(fp32))
                                     .with("bound", speedup(1 / (1 - fp32)));
    } else if (none) {
      *report->add_fix_notes() = Say(messages::kHintCompute);
    }
  }
}

}  // namespace idlescope::report
