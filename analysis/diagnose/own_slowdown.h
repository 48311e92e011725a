// How much longer recorded steps took than others (π).
//
// In: durations of steady host steps inside the windows and outside of them. Out: their ratio;
// 0: unknown. The recorder's own sums compare neighbours and are used where they can be; a
// checkpoint or an evaluation that fell into one side is nobody's slowdown, so then steps are
// compared without such rare stalls.
#pragma once

#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::diagnose {

struct StepsBySide {
  const std::vector<int64_t>& inside;
  const std::vector<int64_t>& outside;
  const std::vector<read::Ns>& outside_begin;  // as outside
};

double own_slowdown(const std::vector<read::Window>& windows, const StepsBySide& steps);

}  // namespace idlescope::diagnose
