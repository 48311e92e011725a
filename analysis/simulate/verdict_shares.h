// True shares of the steady steps by verdict (analysis A6), and the audit of them: what a cause
// is charged against what the job gains when the cause is removed.
//
// In: a run and its labels. Out: shares of the step. The gain comes from a second run, so the
// two numbers are found independently.
#pragma once

#include <utility>
#include <vector>

#include "analysis/simulate/device_labels.h"
#include "analysis/simulate/scenario.h"

namespace idlescope::simulate {

report::Verdict verdict_of(Leaf leaf);

// When the step that `mark` ends is over on the device.
Ns device_step_end(const Execution& run, const StepMark& mark);

struct SteadyShares {
  std::vector<std::pair<double, report::Verdict>> shares;  // idle and exposed, largest first
  double busy = 0;
};
SteadyShares steady_shares(const Program& program, const Execution& run, uint16_t rank,
                           const std::vector<LabelledSpan>& spans);

// What the labels say about the scenario's cause number `cause`, on the rank that it hurts most,
// beside what a second run says. All are shares of the step.
struct ChargeAndGain {
  double gain = 0;     // that removing the cause saves
  double charged = 0;  // with the cause's verdict, above that of the job without it
  // What the same idle time put on blocking calls (SYNC, TRANSFER, ALLOC of another cause):
  // of a call that waits for the device and the work it exposes, either can go.
  double blocking = 0;
  // The rest by verdict: idle time that appears with the cause and has other labels.
  std::vector<std::pair<double, report::Verdict>> elsewhere;
};
ChargeAndGain charge_and_gain(const Scenario& scenario, uint32_t cause);

}  // namespace idlescope::simulate
