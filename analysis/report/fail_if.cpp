#include "analysis/report/fail_if.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "analysis/report/numbers.h"
#include "analysis/report/words.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

using Relation = Condition::Relation;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

read::Fault malformed(std::string_view text) {
  return {messages::kFailIfSyntax, {{"condition", std::string(text)}}};
}

// A number with its unit, in full: "10%", "0.5 %", "250ms". Negative: not one.
double number(std::string_view text, std::string_view unit, double factor) {
  text = trimmed(text);
  if (text.size() <= unit.size() || text.substr(text.size() - unit.size()) != unit) return -1;
  const std::string digits(trimmed(text.substr(0, text.size() - unit.size())));
  if (digits.empty() || digits.find_first_not_of("0123456789.") != std::string::npos) return -1;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  return *end == '\0' ? value * factor : -1;
}

double share_limit(std::string_view text) { return number(text, "%", 0.01); }

double time_limit(std::string_view text) {
  for (const auto& [unit, factor] :
       {std::pair<std::string_view, double>{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}) {
    const double value = number(text, unit, factor);
    if (value >= 0) return value;
  }
  return -1;
}

bool holds(double value, Relation relation, double limit) {
  switch (relation) {
    case Relation::kAbove:
      return value > limit;
    case Relation::kAtLeast:
      return value >= limit;
    case Relation::kBelow:
      return value < limit;
    case Relation::kAtMost:
      return value <= limit;
  }
  return false;
}

// Sum of the leaves of that verdict over all leaves but PROFILER.
double share_of(const Report& report, Verdict verdict) {
  double part = 0;
  double all = 0;
  for (const LeafTime& leaf : report.leaves()) {
    if (leaf.leaf() == PROFILER) continue;
    all += static_cast<double>(leaf.total_ns());
    if (verdict_of(leaf.leaf()) == verdict) part += static_cast<double>(leaf.total_ns());
  }
  return all > 0 ? part / all : -1;
}

double stalls_of(const Report& report, Verdict verdict) {
  double share = 0;
  for (const RunStall& stall : report.stalls()) {
    if (stall.verdict() == verdict) share += stall.share_of_run();
  }
  return share;
}

}  // namespace

read::Expected<Condition> parse_condition(std::string_view text) {
  const size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos || at == 0) return tl::unexpected(malformed(text));
  Condition condition;
  for (const char c : trimmed(text.substr(0, at))) {
    condition.name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  }
  const bool equal = at + 1 < text.size() && text[at + 1] == '=';
  condition.relation = text[at] == '>' ? (equal ? Relation::kAtLeast : Relation::kAbove)
                                       : (equal ? Relation::kAtMost : Relation::kBelow);
  const std::string_view limit = text.substr(at + (equal ? 2 : 1));
  if (condition.name == "STEP") {
    condition.limit = time_limit(limit);
  } else {
    condition.limit = share_limit(limit);
    if (condition.name != "BUSY" && condition.name != "UNKNOWN") {
      Verdict verdict = VERDICT_UNSPECIFIED;
      if (!Verdict_Parse(condition.name, &verdict) || verdict == VERDICT_UNSPECIFIED ||
          verdict == CANNOT_TELL || verdict == UNDERFILLED) {
        return tl::unexpected(malformed(text));
      }
      condition.verdict = verdict;
    }
  }
  if (condition.limit < 0) return tl::unexpected(malformed(text));
  return condition;
}

read::Expected<GateResult> check(const Condition& condition, const Report& report) {
  GateResult result;
  const bool is_time = condition.name == "STEP";
  if (is_time) {
    result.value = static_cast<double>(report.step().unprofiled_mean_ns() > 0
                                           ? report.step().unprofiled_mean_ns()
                                       : report.step().mean_ns() > 0 ? report.step().mean_ns()
                                                                     : report.run().mean_step_ns());
    if (result.value <= 0) result.value = -1;
  } else if (condition.name == "BUSY") {
    result.value = report.leaves().empty() ? -1 : share_of(report, COMPUTE);
  } else if (condition.name == "UNKNOWN") {
    result.value = share_of(report, CANNOT_TELL);
  } else {
    result.value = share_of(report, condition.verdict);
    // Start-up and regular stalls mostly fall outside windows: the run knows them better.
    if (condition.verdict == STARTUP || condition.verdict == PERIODIC) {
      result.value = std::max(result.value, stalls_of(report, condition.verdict));
    }
  }
  if (result.value < 0) {
    return tl::unexpected(read::Fault{messages::kFailIfNoNumber, {{"condition", condition.name}}});
  }
  result.met = holds(result.value, condition.relation, condition.limit);
  const auto shown = [&](double value) {
    return is_time ? duration(std::llround(value)) : percent(value);
  };
  result.text =
      messages::fill(result.met ? messages::kFailIfMet.text : messages::kFailIfPassed.text,
                     {{"name", condition.name},
                      {"value", shown(result.value)},
                      {"limit", shown(condition.limit)}});
  return result;
}

}  // namespace idlescope::report
