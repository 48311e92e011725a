// Finds libidlescope.so and checks that the dynamic loader can take it.
//
// A wrong LD_PRELOAD makes ld.so print an error once per process of the job, so the path is
// absolute and the library was loaded once, in a child of ours, before the job starts.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace idlescope::tools {

// Where the library may be: IDLESCOPE_LIBRARY alone if that is set, else beside this
// program and in the lib directories of the same prefix.
std::vector<std::string> library_candidates(const std::string& program_directory,
                                            const char* idlescope_library);

struct LibraryFailure {
  std::string looked_at;  // not found: the paths, comma-separated
  std::string reason;     // found, but not loadable: why
};
tl::expected<std::string, LibraryFailure> find_recorder_library();

// Directory of this program's file.
std::string program_directory();

}  // namespace idlescope::tools
