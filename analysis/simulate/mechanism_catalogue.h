// The catalogue of causes. Each mechanism says how a cause comes about in a real job; its
// strength is nanoseconds per step of the resource it occupies.
#pragma once

#include <vector>

#include "analysis/simulate/scenario.h"

namespace idlescope::simulate {

void add_data_mechanisms(std::vector<Mechanism>* catalogue);
void add_device_mechanisms(std::vector<Mechanism>* catalogue);
void add_host_mechanisms(std::vector<Mechanism>* catalogue);

}  // namespace idlescope::simulate
