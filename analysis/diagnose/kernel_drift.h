// Whether the same kernels take longer at the end than at the begin: clocks, heat, power.
//
// In: the analysed ops of a device. Out: duration of the last quarter relative to the first,
// over kernels (name and launch shape) that ran often in both. More busy time by slower
// clocks looks like more work; no cause of idle time explains it (B9).
#pragma once

#include "analysis/diagnose/device_pass.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

// Relative change, 0.07: 7 % longer; 0: too little in common to tell.
double kernel_drift(const model::Model& model, const DevicePass& pass);

}  // namespace idlescope::diagnose
