#include "tools/record_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "tools/units.h"

namespace idlescope::tools {
namespace {

std::optional<uint64_t> parse_count(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "0,8" or "0-3,8".
std::optional<std::vector<int>> parse_ranks(std::string_view text) {
  std::vector<int> out;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const std::optional<uint64_t> first = parse_count(part.substr(0, dash));
    const std::optional<uint64_t> last =
        dash == part.npos ? first : parse_count(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last > 1'000'000) return std::nullopt;
    for (uint64_t rank = *first; rank <= *last; ++rank) out.push_back(static_cast<int>(rank));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

// "auto", "full", "off" or "START+LENGTH" in steps.
bool is_window(std::string_view text) {
  if (text == "auto" || text == "full" || text == "off") return true;
  const size_t plus = text.find('+');
  if (plus == text.npos) return false;
  const std::optional<uint64_t> length = parse_count(text.substr(plus + 1));
  return parse_count(text.substr(0, plus)) && length && *length > 0;
}

}  // namespace

tl::expected<RecordPlan, std::string> plan_recording(const RecordOptions& options,
                                                     const JobIdentity& identity,
                                                     const Environment& environment) {
  RecordPlan plan;
  // A flag wins over the variable; a variable that says nothing sensible is an error too,
  // as the recorder inside the job could only ignore it.
  const auto value_of = [&](const std::string& flag, const char* variable) -> std::string {
    if (!flag.empty()) return flag;
    const char* set = environment(variable);
    return set == nullptr ? "" : set;
  };
  const auto wrong = [](const char* flag, const std::string& value, const char* expected) {
    return tl::unexpected(fmt::format("{} {}: expected {}", flag, value, expected));
  };

  const std::string duration = value_of(options.duration, "IDLESCOPE_DURATION");
  if (!duration.empty()) {
    const std::optional<double> seconds = parse_duration_s(duration);
    if (!seconds || *seconds <= 0) {
      return wrong("--duration", duration, "a time such as 90s, 3m or 1h");
    }
    plan.settings["IDLESCOPE_DURATION"] = fmt::format("{}", *seconds);
    if (options.stop_job) plan.stop_after_s = *seconds;
  }
  const std::string steps = value_of(options.steps, "IDLESCOPE_STEPS");
  if (!steps.empty()) {
    const std::optional<uint64_t> count = parse_count(steps);
    if (!count || *count == 0) return wrong("--steps", steps, "a number of steps");
    plan.settings["IDLESCOPE_STEPS"] = std::to_string(*count);
    if (options.stop_job) plan.stop_after_steps = *count;
  }
  if (options.stop_job && duration.empty() && steps.empty()) {
    return tl::unexpected(std::string("--stop-job needs --duration or --steps"));
  }
  const std::string budget = value_of(options.budget, "IDLESCOPE_BUDGET");
  if (!budget.empty()) {
    const std::optional<double> share = parse_share(budget);
    if (!share) return wrong("--budget", budget, "a share of the run such as 1% or 0.01");
    plan.settings["IDLESCOPE_BUDGET"] = fmt::format("{}", *share);
  }
  std::string size = value_of(options.max_size, "IDLESCOPE_MAX_SIZE");
  if (size.empty()) size = kDefaultMaxSize;
  const std::optional<uint64_t> bytes = parse_size_bytes(size);
  if (!bytes || *bytes == 0) return wrong("--max-size", size, "a size such as 500M or 2GB");
  plan.max_size_bytes = *bytes;
  plan.settings["IDLESCOPE_MAX_SIZE"] = std::to_string(*bytes);

  const std::string window = value_of(options.window, "IDLESCOPE_WINDOW");
  if (!window.empty()) {
    if (!is_window(window)) {
      return wrong("--window", window, "auto, full, off or START+LENGTH in steps");
    }
    plan.settings["IDLESCOPE_WINDOW"] = window;
  }
  const std::string detail = value_of(options.detail, "IDLESCOPE_DETAIL");
  if (!detail.empty()) {
    if (detail != "default" && detail != "full") {
      return wrong("--detail", detail, "default or full");
    }
    plan.settings["IDLESCOPE_DETAIL"] = detail;
  }
  if (!options.lang.empty()) plan.settings["IDLESCOPE_LANG"] = options.lang;
  if (options.quiet) plan.settings["IDLESCOPE_LOG"] = "error";
  if (options.verbose) plan.settings["IDLESCOPE_LOG"] = "info";

  int speaker = 0;
  const std::string ranks = value_of(options.ranks, "IDLESCOPE_RANKS");
  if (!ranks.empty()) {
    const std::optional<std::vector<int>> list = parse_ranks(ranks);
    if (!list) return wrong("--ranks", ranks, "ranks such as 0 or 0,8 or 0-3");
    std::string joined;
    for (const int rank : *list) joined += (joined.empty() ? "" : ",") + std::to_string(rank);
    plan.settings["IDLESCOPE_RANKS"] = joined;
    speaker = *std::min_element(list->begin(), list->end());
    if (identity.rank) {
      plan.records_this_rank = std::find(list->begin(), list->end(), *identity.rank) != list->end();
    }
  }
  plan.speaks = !identity.rank || *identity.rank == speaker;
  return plan;
}

}  // namespace idlescope::tools
