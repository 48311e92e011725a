// Where the steps of a training loop begin on the host.
//
// In: host events of one process. Out: boundaries; step i is [boundaries[i],
// boundaries[i+1]). First anchor that exists wins (C2 1-2): explicit marks (API, profiler,
// NVTX, optimizer hook), then the loader's next(). Anchors that need device ops are in
// op_anchors.h.
//
//   marks     |      |      |      |          one per optimizer step
//   next()    |  |   |  |   |  |   |          two per mark: gradient accumulation of 2
//   updates      ▲       ▲       ▲            without marks they tell how many batches a step has
//   eval              ‖‖‖‖‖                    next() of an iterator without marks inside
//
// Invariant: boundaries are strictly increasing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/model/loader_history.h"

namespace idlescope::model {

struct Stretch {
  Ns begin_ns = 0;
  Ns end_ns = 0;
};

struct StepTrack {
  std::string anchor = "none";
  std::vector<Ns> boundaries;
  bool on_device = false;           // boundaries are begins of ops, not times on the host
  double confidence = 0;            // C6
  uint32_t micro_steps = 1;         // next() per step, where that is an integer > 1
  std::vector<Stretch> evaluation;  // passes over loaders whose batches train nothing
  uint64_t evaluation_batches = 0;

  size_t steps() const { return boundaries.size() < 2 ? 0 : boundaries.size() - 1; }
  bool in_evaluation(Ns begin_ns, Ns end_ns) const;
};

struct WeightUpdates;

StepTrack find_step_track(const read::Recording& recording, const LoaderHistory& loader,
                          uint32_t process, const WeightUpdates& updates);

}  // namespace idlescope::model
