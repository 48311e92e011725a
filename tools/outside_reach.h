// Recognises commands that start the job where a preloaded library does not follow
// (containers, other machines, other users) and says the order that works.
//
// In: CMD as typed. Out: which program takes the job away and the corrected command line.
// `idlescope record -- docker run IMG python train.py` records nothing; idlescope has to be
// behind the image.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace idlescope::tools {

struct OutsideReach {
  std::string program;        // "docker"
  std::string better;         // the command line to type instead
  bool keep_preload = false;  // the library may still arrive (srun on a shared file system)
  bool container = false;
};

std::optional<OutsideReach> find_outside_reach(const std::vector<std::string>& command,
                                               const std::string& program_directory);

// One line that a shell reads back as these words.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace idlescope::tools
