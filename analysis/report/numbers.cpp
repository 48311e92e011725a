#include "analysis/report/numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace idlescope::report {

std::string decimal(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

TimeScale::TimeScale(int64_t largest_ns) {
  const double magnitude = std::abs(static_cast<double>(largest_ns));
  if (magnitude < 999.5) {
    per_unit_ns_ = 1;
    unit_ = "ns";
  } else if (magnitude < 999.5e3) {
    per_unit_ns_ = 1e3;
    unit_ = "us";
  } else if (magnitude < 999.5e6) {
    per_unit_ns_ = 1e6;
    unit_ = "ms";
  } else if (magnitude < 180e9) {
    per_unit_ns_ = 1e9;
    unit_ = "s";
  } else if (magnitude < 180 * 60e9) {
    per_unit_ns_ = 60e9;
    unit_ = "min";
  } else {
    per_unit_ns_ = 3600e9;
    unit_ = "h";
  }
  const double scaled = magnitude / per_unit_ns_;
  decimals_ = per_unit_ns_ == 1 || scaled >= 99.5 ? 0 : scaled >= 9.95 ? 1 : 2;
}

std::string TimeScale::number(int64_t ns) const {
  return decimal(static_cast<double>(ns) / per_unit_ns_, decimals_);
}

std::string TimeScale::with_unit(int64_t ns) const {
  const std::string text = number(ns);
  // "0 ms" of something that is there would read as nothing.
  if (text == "0" && ns != 0 && per_unit_ns_ > 1) return duration(ns);
  return text + " " + unit_;
}

std::string duration(int64_t ns) { return TimeScale(ns).with_unit(ns); }

std::string percent(double share) {
  const double value = share * 100;
  const double magnitude = std::abs(value);
  int decimals = 0;
  if (magnitude < 0.0005) return "0 %";
  if (magnitude < 0.095) {
    decimals = 3;
  } else if (magnitude < 0.95) {
    decimals = 2;
  } else if (magnitude < 9.95 || (magnitude > 99 && magnitude < 99.95)) {
    decimals = 1;
  }
  return decimal(value, decimals) + " %";
}

std::string speedup(double factor) {
  return fmt::format("{:.{}f}x", factor, factor < 9.95 ? 2 : factor < 99.5 ? 1 : 0);
}

std::string bytes(uint64_t count) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(count);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.5 ? 0 : 1;
  return decimal(value, decimals) + " " + kUnits[unit];
}

std::string count(uint64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() > 4) {
    for (size_t place = digits.size() - 3;; place -= 3) {
      digits.insert(place, " ");
      if (place <= 3) break;
    }
  }
  return digits;
}

}  // namespace idlescope::report
