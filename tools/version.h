// The version that every file and report of ours carries; set by the build.
#pragma once

#ifndef IDLESCOPE_VERSION
#error "the build sets IDLESCOPE_VERSION from the project's version"
#endif

namespace idlescope::tools {

inline constexpr const char kVersion[] = IDLESCOPE_VERSION;

}  // namespace idlescope::tools
