// Windows that somebody asked for, oldest first: a queue of a few words for the drain thread.
//
// In: requests of the C API and of the control file. Out: the front one, when the scheduler can
// honour it. A request that finds no room replaces the youngest: what the user said last wins.
#pragma once

#include <cstdint>

namespace idlescope::session {

struct WindowRequest {
  bool open = false;
  const char* reason = "";
  uint64_t at_step = 0;  // not before so many steps have ended; ranks open together by it
};

class WindowRequests {
 public:
  static constexpr uint32_t kCapacity = 32;

  bool empty() const { return count_ == 0; }
  const WindowRequest& front() const { return waiting_[0]; }
  void push(const WindowRequest& request) {
    if (count_ == kCapacity) --count_;
    waiting_[count_++] = request;
  }
  // A window that had to be given up comes first again.
  void push_front(const WindowRequest& request) {
    if (count_ == kCapacity) --count_;
    for (uint32_t i = count_; i > 0; --i) waiting_[i] = waiting_[i - 1];
    waiting_[0] = request;
    ++count_;
  }
  void pop() {
    for (uint32_t i = 1; i < count_; ++i) waiting_[i - 1] = waiting_[i];
    --count_;
  }

 private:
  WindowRequest waiting_[kCapacity];
  uint32_t count_ = 0;
};

}  // namespace idlescope::session
