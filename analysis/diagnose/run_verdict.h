// Start-up and regular stalls against the steady step: which ledger has the verdict.
//
// Windows lie in steady steps, so what happens once an epoch or every hundred steps is in
// RUN only. It has the verdict where it costs the run more than the largest steady cause.
#pragma once

#include "analysis/diagnose/diagnosis.h"

namespace idlescope::diagnose {

void weigh_run_against_window(const RunLedger& run, Diagnosis& out);

}  // namespace idlescope::diagnose
