// How much longer a step took while the device was recorded.
//
// In: the step points of the run and the recorder's windows. Out: a ratio for the report and
// its LIMITS line. Both sides are medians of steps beside each other, so that warm-up, stalls
// and the ends of epochs, which fall on one side by chance, do not count; where the steps are
// too few, too uneven or plainly of another kind there is no ratio.
#pragma once

#include <vector>

#include "analysis/diagnose/diagnosis.h"
#include "analysis/read/recording.h"

namespace idlescope::diagnose {

// At least 1; 0: cannot be said.
double own_slowdown(const read::Process& process, const std::vector<StepPoint>& points,
                    Ns steady_from);

}  // namespace idlescope::diagnose
