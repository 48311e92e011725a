// The environment of the recorded job: ours plus what the recorder must know.
//
// In: environ, the settings from the command line, the library. Out: environ with
// LD_PRELOAD (ours first, what was there kept) and IDLESCOPE_* set. Nothing else changes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace idlescope::tools {

using Settings = std::map<std::string, std::string>;  // IDLESCOPE_OUTPUT, …

// `library` empty: LD_PRELOAD stays as it is.
std::vector<std::string> job_environment(const char* const* environ, const Settings& settings,
                                         const std::string& library);

}  // namespace idlescope::tools
