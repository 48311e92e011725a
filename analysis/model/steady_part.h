// Which steps speak for the training loop: the steady part of a series of durations.
//
// In: durations of consecutive steps. Out: the range to analyse. Leading steps that are
// longer than 1.5x the median of the rest are warm-up (C5, amendment A1.13); in a long
// series a lasting change of level by more than 10 % splits it, and the longest part is
// kept (the later one of equals).
//
//   ██ █ ▆ ▅ ▄▄▄▄▄▄▄▄▄▄▄▄▄█▄▄▄▄▄▄▄▄▄▄▄▄▄    single long steps (checkpoint, log) stay in
//   └ warm-up └──────────── steady ───────
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace idlescope::model {

struct Range {
  size_t first = 0;
  size_t last = 0;  // one past
  size_t size() const { return last - first; }
};

// Number of leading warm-up steps; at most half of the series.
size_t warmup_length(const std::vector<int64_t>& durations_ns);

Range steady_range(const std::vector<int64_t>& durations_ns);

int64_t median(std::vector<int64_t> values);  // 0 for none

}  // namespace idlescope::model
