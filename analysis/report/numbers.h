// Numbers as a person reads them: the one place that rounds.
//
// In: ns, fractions, bytes. Out: short ASCII text ("212 ms", "38 %", "9.6 MB"). Used by the
// report builder for the values of sentences and by the renderers for tables, so that the
// same quantity reads the same on every page.
#pragma once

#include <cstdint>
#include <string>

namespace idlescope::report {

// One unit and one number of decimals for all times of a sentence or a column, chosen by
// its largest value: parts of a step then add up as printed.
class TimeScale {
 public:
  explicit TimeScale(int64_t largest_ns);
  std::string number(int64_t ns) const;  // "81", trailing zeros cut
  // "81 ms"; what would round to "0 ms" by its own scale: "12 us".
  std::string with_unit(int64_t ns) const;
  const char* unit() const { return unit_; }

 private:
  double per_unit_ns_;
  int decimals_;
  const char* unit_;
};

// A single time by its own scale, three significant digits: "4 us", "2.31 ms", "17.7 min".
std::string duration(int64_t ns);
// 0.382 -> "38 %"; one decimal from 1 to 10 % and above 99 %, two digits below 1 %.
std::string percent(double share);
// "1.61x"; "1.6x" would hide a difference of 3 %.
std::string speedup(double factor);
std::string bytes(uint64_t count);   // decimal units: "9.6 MB"
std::string count(uint64_t number);  // "12 450": groups of three from 10 000
// Decimal text with at most `decimals` decimals, trailing zeros cut.
std::string decimal(double value, int decimals);

}  // namespace idlescope::report
