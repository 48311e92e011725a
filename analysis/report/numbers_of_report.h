// Copies the numbers of a Diagnosis into a Report; build.cpp adds what is ranked and worded.
#pragma once

#include "analysis/report/context.h"

namespace idlescope::report {

void copy_numbers(const Context& context, Report* report);

}  // namespace idlescope::report
