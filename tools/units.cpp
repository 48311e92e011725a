#include "tools/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace idlescope::tools {
namespace {

// The number at the start of `text`; `text` keeps what follows.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

std::optional<double> parse_duration_s(std::string_view text) {
  const std::optional<double> number = take_number(text);
  if (!number) return std::nullopt;
  if (text.empty() || text == "s") return *number;
  if (text == "m") return *number * 60;
  if (text == "h") return *number * 3600;
  if (text == "d") return *number * 86400;
  return std::nullopt;
}

std::optional<uint64_t> parse_size_bytes(std::string_view text) {
  const std::optional<double> number = take_number(text);
  if (!number) return std::nullopt;
  double factor = 1;
  if (!text.empty() && text != "B") {
    constexpr std::string_view kPrefixes = "KMGT";
    const char letter = text[0] == 'k' ? 'K' : text[0];
    const size_t power = kPrefixes.find(letter);
    if (power == kPrefixes.npos) return std::nullopt;
    text.remove_prefix(1);
    const bool binary = !text.empty() && text[0] == 'i';
    if (binary) text.remove_prefix(1);
    if (!text.empty() && text != "B") return std::nullopt;
    factor = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  const double bytes = *number * factor;
  if (bytes > 9e18) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::optional<double> parse_share(std::string_view text) {
  std::optional<double> number = take_number(text);
  if (!number) return std::nullopt;
  if (text == "%") {
    *number /= 100;
  } else if (!text.empty()) {
    return std::nullopt;
  }
  if (*number > 1) return std::nullopt;
  return number;
}

std::string format_duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string format_size(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* name : {"kB", "MB", "GB", "TB"}) {
    value /= 1000;
    unit = name;
    if (value < 999.5) break;
  }
  // "2 GB", not "2.0 GB": limits are round numbers.
  if (value >= 99.95 || std::abs(value - std::round(value)) < 0.05) {
    return fmt::format("{:.0f} {}", value, unit);
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string format_share(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string count_of(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace idlescope::tools
