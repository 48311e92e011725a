// Steps from the device's work alone, for recordings without marks and loader (C2 3-6, C6).
//
// In: the ops of one device in order of launch. Out: a StepTrack whose boundaries are
// launch times, with the confidence that independent anchors give each other.
//
//   ops        f f f f b b b b o f f f f b b b b o f f f f b b b b o
//   optimizer                  ▲                 ▲                 ▲   clusters of `o`
//   threads    m m m m a a a a m m m m m a a a a m m m m m a a a a m   runs of `a`
//   count mode each token that repeats evenly votes for its number of clusters
//   rhythms    of collectives, and of busy time where all is in graphs (rhythm_anchors.h)
//
// One anchor alone is not enough where it may count layers instead of steps: count mode
// needs a second anchor with the same count, optimizer tokens too below four clusters.
// Confidence below 0.6 gives no steps.
#pragma once

#include "analysis/model/device_timeline.h"
#include "analysis/model/launch_order.h"
#include "analysis/model/step_track.h"

namespace idlescope::model {

StepTrack find_op_track(const read::Recording& recording, const read::Process& process,
                        const DeviceTimeline& device);

}  // namespace idlescope::model
