// Whether a command can be started, before it is: as execvp would find it.
#pragma once

#include <string>

namespace idlescope::tools {

// 0, or the errno that execvp would give: ENOENT, EACCES. A name without '/' is looked for in
// `path` (the value of PATH; null: the system's default). Scripts without a `#!` line count as
// startable, execvp hands them to a shell.
int command_error(const std::string& name, const char* path);

}  // namespace idlescope::tools
