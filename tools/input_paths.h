// What the user means by the PATHs of report, dump, compare and export.
//
// No word at all means the newest idlescope-* directory here.
#pragma once

#include <optional>
#include <string>

namespace idlescope::tools {

// The newest directory `idlescope-*` under `directory` by its last change; absent: none.
std::optional<std::string> newest_recording(const std::string& directory);

}  // namespace idlescope::tools
