#include "analysis/report/advice.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "proto/messages.h"

namespace idlescope::report {
namespace {

// Dense bf16 against fp32 matrix rate of one GPU, the largest of the current ones (A100:
// 312 / 19.5 TFLOP/s; H100 and H200: 989 / 67).
constexpr double kBf16OverFp32 = 16;

}  // namespace

Fix* Advice::offer(std::string_view id, Verdict addresses, Text text, double cost_ns,
                   double ceiling_ns) {
  if (!context_.worthwhile(cost_ns)) return nullptr;
  for (const Fix& fix : report_->fixes()) {
    if (fix.id() == id) return nullptr;
  }
  Fix* fix = report_->add_fixes();
  fix->set_id(std::string(id));
  fix->set_addresses(addresses);
  *fix->mutable_text() = std::move(text);
  const double most = std::max(cost_ns, std::min(ceiling_ns, context_.absent_ns()));
  fix->set_ceiling_ns(std::llround(most));
  const double bound = context_.bound(most);
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
  // Start-up alone says nothing about the training that follows.
  if (d.verdict == STARTUP && d.step.startup_only) return;

  // The verdict first, then the others by what they cost.
  std::vector<std::pair<double, Verdict>> order;
  for (const Verdict verdict :
       {DATA, TRANSFER, LAUNCH, SYNC, HOST, ALLOC, COMPILE, PERIODIC, COMM}) {
    if (verdict != d.verdict) order.emplace_back(context.verdict_ns(verdict), verdict);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  order.insert(order.begin(), {0, d.verdict});
  // Without free cores the loop starves beside its own loader: less work there helps both.
  const bool starved = d.limiter == LIMITER_CORES && d.verdict == HOST;
  if (starved && context.verdict_ns(DATA) > 0.5 * context.verdict_ns(HOST)) {
    order.insert(order.begin(), {0, DATA});
  }
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
    if (fp32 >= 0.05 && fp32 <= 1) {
      *report->add_fix_notes() =
          Say(messages::kHintBf16)
              .with("share", percent(fp32))
              .with("bound", speedup(1 / (1 - fp32 * (1 - 1 / kBf16OverFp32))));
    } else if (none) {
      *report->add_fix_notes() = Say(messages::kHintCompute);
    }
  }
}

}  // namespace idlescope::report
