// `idlescope ctl`: commands that arrive through the recording directory.
//
//   ctl appends a line ──► DIR/control ──► looked at five times a second ──► window requests
//
// In: lines "start", "start STEP" (not before so many steps; ranks open together by it) and
// "stop". Out: each line once, in order, to take(). What was written before this process looked
// first counts only by its last line, so that a rank that comes late joins what is going on.
// Drain thread: one stat per look, no descriptor is kept open. A file that is not a plain file
// of this user (or root) is ignored, and so is what makes no sense.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idlescope::session {

inline constexpr char kControlFileName[] = "control";  // also known to tools/ctl

struct ControlCommand {
  bool start;
  uint64_t at_step;  // 0: at once
};

// One line without its end. False: not a command.
bool parse_control_line(const char* line, size_t size, ControlCommand* out);

class ControlFile {
 public:
  static constexpr int64_t kLookNs = 200'000'000;

  explicit ControlFile(const char* directory);

  // Calls take(const ControlCommand&) for each new command.
  template <typename Take>
  void look(int64_t now_ns, Take take) {
    if (now_ns < next_look_ns_) return;
    next_look_ns_ = now_ns + kLookNs;
    if (!read_more()) return;
    const bool catching_up = !looked_;
    looked_ = true;
    ControlCommand command = {};
    bool any = false;
    while (next_line(&command)) {
      any = true;
      if (!catching_up) take(command);
    }
    if (catching_up && any) take(command);
  }

 private:
  bool read_more();
  bool next_line(ControlCommand* out);

  char path_[4096 + 16];
  char text_[4096];
  size_t text_size_ = 0;
  size_t text_at_ = 0;
  int64_t offset_ = 0;  // of the file, behind the last whole line
  int64_t next_look_ns_ = 0;
  bool looked_ = false;
};

}  // namespace idlescope::session
