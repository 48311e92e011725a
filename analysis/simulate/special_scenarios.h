// Scenarios that are not one cause in a healthy job: several causes at once, jobs that look
// sick and are not, recordings without the evidence that the answer needs.
#pragma once

#include <vector>

#include "analysis/simulate/scenario.h"

namespace idlescope::simulate {

// `causes` causes of different verdicts, at most one of them in the loader.
Scenario mixed_scenario(int causes, bool reporting, uint64_t seed);

// B9: large host-side numbers that cost the device nothing.
struct Trap {
  const char* name;
  bool reporting;                                // of the reporting set only
  void (*apply)(LoopSpec* spec, Ns compute_ns);  // compute_ns: device time of a step, about
};
const std::vector<Trap>& traps();
Scenario trap_scenario(const Trap& trap, std::string_view profile, uint64_t seed);

// A cause whose records are missing: the right answer is to say so.
struct RemovedEvidence {
  const char* name;
  bool reporting;
  const char* cause;
  const char* mechanism;
  std::vector<trace::Kind> kinds;
  std::vector<report::Leaf> leaves;  // not to be claimed
  bool one_rank = false;
};
const std::vector<RemovedEvidence>& removed_evidence();
Scenario removed_scenario(const RemovedEvidence& removed, uint64_t seed);

}  // namespace idlescope::simulate
