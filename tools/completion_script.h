// Shell completion for bash, zsh and fish.
#pragma once

#include <string>
#include <vector>

#include "tools/described_command.h"

namespace idlescope::tools {

enum class Shell { kBash, kZsh, kFish };

// The script that the shell sources.
std::string completion_script(Shell shell, const std::vector<DescribedCommand>& commands);

}  // namespace idlescope::tools
