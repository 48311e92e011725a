// A scenario run and put into files: the recording of every process, and the truth. The bytes
// depend on the scenario alone, not on machine, compiler, library or threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/simulate/scenario.h"

namespace idlescope::simulate {

using NamedBytes = std::pair<std::string, std::string>;

// Name and content of each file; the scenario is tuned already. None: the job never ends.
std::optional<std::vector<NamedBytes>> scenario_files(const Scenario& scenario);

// FNV-1a of names and contents, 64 bits.
uint64_t digest(const std::vector<NamedBytes>& files);

}  // namespace idlescope::simulate
