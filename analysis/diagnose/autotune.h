// Where a library tried several kernels for one shape and timed them: cuDNN's benchmark mode,
// Triton's and Inductor's autotuning.
//
// In: the ops of one device with their calls. Out: stretches of time, from the first trial's
// launch to the last one's end.
//
//   device   conv_a   conv_b   conv_c   conv_a conv_a …      three or more matrix kernels of
//   host    launch▐sync launch▐sync launch▐sync              different names in a row, each
//                                                            seen nowhere else, and the host
// waiting between them. A model's own layers have other kernels between them and do not wait.
#pragma once

#include <vector>

#include "analysis/diagnose/call_leaf.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

std::vector<model::Stretch> find_autotuning(const model::Model& model,
                                            const model::DeviceTimeline& device,
                                            const CallLeaf& calls);

}  // namespace idlescope::diagnose
