// Commands to a running job: lines that `idlescope ctl` appends to a file of the recording
// directory and every recorded process of the job reads (profiler/session/control_file.h).
//
// In: a directory and a command. Out: one line, appended in a single write.
#pragma once

#include <cstdint>
#include <string>

namespace idlescope::tools {

inline constexpr const char* kControlFile = "control";

// "start", "start 1200" (from that step on, for ranks that must agree) or "stop".
struct Control {
  bool start = false;
  uint64_t at_step = 0;
};

// False: it could not be written (errno says why).
bool append_control(const std::string& directory, const Control& control);

// True if the process has the recorder's own thread: it has initialised CUDA and listens.
// Only for processes that this one can see in /proc.
bool listens(int64_t pid);

}  // namespace idlescope::tools
