// The truth: one leaf for every nanosecond of a device timeline.
//
// Definition (docs/simulator.md, "What true means"): labels follow analysis A1–A2 and B1–B5
// literally, but every edge is the one that really bound the run: which op, launch, batch or
// rank an op waited for is read from the engine's log, not inferred. A blocking call that
// straddles the moment the device ran dry is charged what the gap would shrink by if the
// call had returned at once (B3), replayed with the true ready times.
#pragma once

#include <vector>

#include "analysis/simulate/engine.h"

namespace idlescope::simulate {

struct LabelledSpan {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  Leaf leaf = report::LEAF_UNSPECIFIED;
};

// From the begin of the rank's first op to the end of its last, contiguous.
std::vector<LabelledSpan> label_device(const Program& program, const Execution& run, uint16_t rank);

}  // namespace idlescope::simulate
