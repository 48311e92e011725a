#include "analysis/read/decimal_time.h"

#include <limits>

namespace idlescope::read {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<DecimalTime> parse_decimal(std::string_view text, int exponent) {
  while (!text.empty() && (text.back() == ' ' || (text.back() >= '\t' && text.back() <= '\r'))) {
    text.remove_suffix(1);
  }
  size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++at;

  // mantissa * 10^scale; 19 digits always fit.
  uint64_t mantissa = 0;
  int significant = 0;
  int scale = exponent;
  int decimals = 0;
  bool any_digit = false;
  bool after_point = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (!is_digit(c)) break;
    any_digit = true;
    if (after_point) ++decimals;
    if (significant < 19) {
      mantissa = mantissa * 10 + static_cast<uint64_t>(c - '0');
      if (mantissa > 0) ++significant;
      if (after_point) --scale;
    } else if (!after_point) {
      ++scale;
    }
  }
  if (!any_digit) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    int sign = 1;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) sign = text[at++] == '-' ? -1 : 1;
    int power = 0;
    bool any_power = false;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      any_power = true;
      if (power < 1000) power = power * 10 + (text[at] - '0');
    }
    if (!any_power) return std::nullopt;
    scale += sign * power;
    decimals = decimals - sign * power > 0 ? decimals - sign * power : 0;
  }
  if (at != text.size()) return std::nullopt;

  for (; scale > 0 && mantissa != 0; --scale) {
    if (mantissa > std::numeric_limits<uint64_t>::max() / 10) return std::nullopt;
    mantissa *= 10;
  }
  if (scale < 0) {
    uint64_t divisor = 1;
    for (; scale < 0 && divisor <= mantissa / 1; ++scale) {
      if (divisor > std::numeric_limits<uint64_t>::max() / 10) break;
      divisor *= 10;
    }
    mantissa =
        scale < 0 ? 0 : mantissa / divisor + (mantissa % divisor >= (divisor + 1) / 2 ? 1 : 0);
  }
  if (mantissa > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  const int64_t ns = static_cast<int64_t>(mantissa);
  return DecimalTime{negative ? -ns : ns, decimals};
}

}  // namespace idlescope::read
