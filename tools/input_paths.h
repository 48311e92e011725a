// What the user means by the PATHs of report, dump, compare and export.
//
// In: words of the command line. Out: paths that exist for the reader. No word at all means
// the newest idlescope-* directory here; "-" means standard input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/read/fault.h"

namespace idlescope::tools {

// The newest directory `idlescope-*` under `directory` by its last change; absent: none.
std::optional<std::string> newest_recording(const std::string& directory);

// Copies what is a stream ("-", a pipe) to a nameless file, since readers seek. The file
// lives as long as this process.
read::Expected<std::string> seekable_path(const std::string& path);

}  // namespace idlescope::tools
