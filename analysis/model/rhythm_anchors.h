// Steps from rhythm alone: of collectives, and of busy time (C2 5-6).
//
// In: the launch order; the ops of a device. Out: where steps begin.
//
//   collectives   c c c        c c c        c c c      largest gap of the period: forward
//                 ▲            ▲            ▲
//   busy time     ██▁███▁█▁▁▁██▁███▁█▁▁▁██▁███▁█▁▁▁    the lag at which it is most like itself
//                          ▲           ▲
//
// Collectives: the smallest lag of the sequence (kind, size, distance to the one before) that
// leaves about as few mismatches as the best one. FALCON (arXiv 2410.12588) takes the first lag
// with 0.95 agreement; with a collective per layer that is the layer.
// Busy time is for work inside CUDA graphs of several sizes, which has no tokens to count.
// Candidates by autocorrelation, confirmed by the periodogram, as AUTOPERIOD does (Vlachos et
// al., SDM 2005).
#pragma once

#include <vector>

#include "analysis/model/launch_order.h"

namespace idlescope::model {

struct Rhythm {
  std::vector<size_t> starts;  // collectives: launch order; busy time: DeviceTimeline::ops
  double strength = 0;         // 0…1
  // The gap before each start is at least twice the others of a period: forward and optimizer
  // lie in it. Else the period may be a layer.
  bool pronounced = false;
};

Rhythm collective_rhythm(const std::vector<Launched>& order);

Rhythm busy_rhythm(const read::Process& process, const DeviceTimeline& device);

}  // namespace idlescope::model
