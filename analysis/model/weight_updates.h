// When the weights of a model were updated: what tells a step from a micro-step (C3).
//
// In: a recording and its device timelines. Out: the updates of one process in time order,
// and the stretches of time in which an update would have been seen. Ranges of the Python
// bridge and of profilers ("Optimizer.step#…") come first, kernels with an optimizer's name
// second.
//
//   next()     |   |   |   |   |   |        four micro-steps of two steps
//   updates          ▲       ▲       ▲
#pragma once

#include <vector>

#include "analysis/model/device_timeline.h"
#include "analysis/model/step_track.h"

namespace idlescope::model {

struct WeightUpdates {
  // Of the optimizer that closes a round where several take turns (GAN, parameter groups).
  std::vector<Ns> times_ns;
  std::vector<Stretch> seen;

  bool seen_in(Ns begin_ns, Ns end_ns) const;
};

WeightUpdates find_weight_updates(const read::Recording& recording, uint32_t process,
                                  const std::vector<DeviceTimeline>& devices);

}  // namespace idlescope::model
