// idlescope(1) in the man macros of troff, from the same text as `--help`.
#pragma once

#include <string>
#include <vector>

#include "tools/described_command.h"

namespace idlescope::tools {

std::string manual_page(const std::vector<DescribedCommand>& commands, const std::string& version);

}  // namespace idlescope::tools
