// From batches to steps: several batches make one update of the weights (C3).
//
// In: the next() calls of training passes and the weight updates. Out: the next() calls
// that begin a step, and how many batches a step has. Outside of the time in which updates
// are seen the grouping goes on by the number of the batch in its pass.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/model/weight_updates.h"

namespace idlescope::model {

struct MicroStep {
  Ns begin_ns;
  int64_t batch;  // number in its pass, −1: unknown
};

struct MacroSteps {
  std::vector<Ns> boundaries;
  uint32_t micro_steps = 1;
  bool agrees = false;  // the updates confirm the steps
};

MacroSteps group_micro_steps(const std::vector<MicroStep>& micro, const WeightUpdates& updates);

}  // namespace idlescope::model
