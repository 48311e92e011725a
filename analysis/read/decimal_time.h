// Decimal text to integer nanoseconds, exactly.
//
// In: a number as a JSON file spells it ("1606910596297023.25", "-3e2"), in units of
// 10^exponent ns. Out: ns, halves rounded away from zero. No double on the way: near
// 1.7e18 ns a double steps by 256 ns and moved sums by up to 122 µs (kineto timestamps).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace idlescope::read {

struct DecimalTime {
  int64_t ns = 0;
  int decimals = 0;  // digits after the point in the text
};

// Nothing for what is not a finite decimal number ("NaN", "Infinity", "") or does not fit.
// Trailing white space is ignored.
std::optional<DecimalTime> parse_decimal(std::string_view text, int exponent);

inline std::optional<DecimalTime> parse_microseconds(std::string_view text) {
  return parse_decimal(text, 3);
}

}  // namespace idlescope::read
