// The benchmark: which scenarios make up a set. Tuning and reporting sets differ in seeds and
// in mechanisms (Mechanism::reporting); thresholds of the analyzer may be fitted on the tuning
// set, only the reporting set is quoted.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/simulate/scenario.h"

namespace idlescope::simulate {

// "tuning", "reporting", or "reporting1" (the first reporting seeds: their failures have been
// looked at). `count` > 0 takes an even spread of so many. Names are unique.
// Scenarios are not tuned yet.
std::vector<Scenario> scenario_set(std::string_view set, size_t count);

// One scenario from the command line. `mechanism` empty: the first of the cause.
Scenario single_scenario(std::string_view cause, std::string_view mechanism, double share,
                         std::string_view profile, uint64_t seed);

// Shapes the base job for the scenario's causes and lays its windows and nuisances.
void finish_scenario(Scenario* scenario);

// A healthy job, drawn from the seed. `cause`: shapes that suit it only.
LoopSpec draw_job(uint64_t seed, std::string_view cause);

}  // namespace idlescope::simulate
