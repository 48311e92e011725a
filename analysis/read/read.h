// The door to everything that can be read: native traces, PyTorch profiler JSON, nsys SQLite.
//
// In: files and directories as the user named them. Out: one Recording of all of them (one
// Process per file, or per rank of a file), or one Fault that says what the input is and what
// to do. A directory means its .istrace files, else its traces of other tools.
#pragma once

#include <string>
#include <vector>

#include "analysis/read/fault.h"

namespace idlescope::read {

struct Recording;  // recording.h

Expected<Recording> read_paths(const std::vector<std::string>& paths);

}  // namespace idlescope::read
