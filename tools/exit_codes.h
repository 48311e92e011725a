// Exit codes of every subcommand; scripts rely on them (docs: README.md, "Exit codes").
#pragma once

namespace idlescope::tools {

inline constexpr int kOk = 0;
inline constexpr int kUsage = 1;
inline constexpr int kBadInput = 2;    // bad, empty or foreign input
inline constexpr int kGateFailed = 3;  // --fail-if
inline constexpr int kOurBug = 4;
inline constexpr int kInterrupted = 130;

// `record` is transparent: it returns CMD's own code, or 128+n where signal n killed CMD.
// Only while CMD has not started it uses codes of its own, the ones of env and timeout.
inline constexpr int kRecordFailed = 125;
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kSignalBase = 128;

}  // namespace idlescope::tools
