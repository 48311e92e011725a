// Training and evaluation told apart, each with numbers of its own (C4).
//
// In: the phases of the run as the host saw them, the chosen device's pass and its steps. Out:
// the same with what the device did in each: leaves of the part inside windows. A job without
// evaluation has the one phase.
#pragma once

#include <vector>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/shares.h"

namespace idlescope::diagnose {

// On the device, as DeviceSteps: from the end of what was launched before to the end of what
// was launched in it.
std::vector<model::DeviceStep> evaluation_spans(const model::Model& model, uint32_t device);

void complete_phases(const model::Model& model, const DevicePass& training, const Shares& shares,
                     std::vector<Phase>& phases);

}  // namespace idlescope::diagnose
