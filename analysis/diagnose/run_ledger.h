// The RUN ledger (A0): start-up, epochs and stalls of the whole job, from the host side.
//
// In: host steps of the chosen process, loader history, checkpoint and compile ranges, the
// windows. Out: RunLedger, step points, phases, and the host's part of StepSummary (steps
// outside windows give the unprofiled step and the recorder's slowdown).
//
//   |startup······|▄▄▄▄▄█▄▄▄▄▄█▄▄▄▄▄█▄▄▄▄|restart··|▄▄▄▄▄█▄▄▄▄    steps over time
//                       ↑ every 6th step is long: a stall with a period
#pragma once

#include <vector>

#include "analysis/diagnose/diagnosis.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

struct RunResult {
  RunLedger run;
  std::vector<StepPoint> points;
  std::vector<Phase> phases;
  uint64_t steps = 0;
  double unprofiled_mean_ns = 0;
  uint64_t unprofiled_steps = 0;
  double slowdown = 0;
};

RunResult build_run_ledger(const model::Model& model, uint32_t process);

}  // namespace idlescope::diagnose
