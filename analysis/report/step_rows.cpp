#include "analysis/report/step_rows.h"

#include <algorithm>
#include <map>

#include "analysis/report/words.h"

namespace idlescope::report {

StepRows step_rows(const Report& report, size_t limit) {
  StepRows out;
  out.window = report.step().window_only() || report.step().mean_ns() <= 0;
  std::map<Verdict, StepRow> by_verdict;
  for (const LeafTime& leaf : report.leaves()) {
    const int64_t ns = out.window ? leaf.total_ns() : leaf.per_step_ns();
    if (ns <= 0) continue;
    out.total_ns += ns;
    StepRow& row = by_verdict[verdict_of(leaf.leaf())];
    row.verdict = verdict_of(leaf.leaf());
    row.ns += ns;
    row.parts.emplace_back(leaf.leaf(), ns);
  }
  if (out.total_ns == 0) return out;

  StepRow compute = by_verdict[COMPUTE];
  compute.verdict = COMPUTE;
  by_verdict.erase(COMPUTE);
  std::vector<StepRow> waits;
  for (auto& [verdict, row] : by_verdict) waits.push_back(std::move(row));
  std::stable_sort(waits.begin(), waits.end(),
                   [](const StepRow& a, const StepRow& b) { return a.ns > b.ns; });

  out.rows.push_back(std::move(compute));
  StepRow other;
  for (StepRow& row : waits) {
    const bool large = static_cast<double>(row.ns) >= 0.03 * static_cast<double>(out.total_ns);
    const bool last = &row == &waits.back() && other.ns == 0;
    const bool named = row.verdict == report.verdict() && row.verdict != CANNOT_TELL;
    if ((large || named) && out.rows.size() + (last ? 0 : 1) < limit) {
      out.rows.push_back(std::move(row));
    } else {
      other.ns += row.ns;
      other.parts.insert(other.parts.end(), row.parts.begin(), row.parts.end());
    }
  }
  if (other.ns > 0) out.rows.push_back(std::move(other));
  for (StepRow& row : out.rows) {
    std::stable_sort(row.parts.begin(), row.parts.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
  }
  return out;
}

}  // namespace idlescope::report
