// Builds the Program of a training job from its parameters: for each rank the main loop,
// the autograd thread, the loader, and what the job's model launches.
//
// In: LoopSpec. Out: Program, ready for the engine. The same LoopSpec gives the same Program
// on every machine.
#pragma once

#include "analysis/simulate/loop_spec.h"
#include "analysis/simulate/program.h"

namespace idlescope::simulate {

Program build_loop(const LoopSpec& spec);

}  // namespace idlescope::simulate
