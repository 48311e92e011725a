// What must be forgotten in the child of a fork, on a page that the kernel wipes.
//
// One page with MADV_WIPEONFORK: after fork(), _Fork() and clone() the child reads zeros, so
// `state` says "new process" and the lock is free, whatever the parent's threads were doing.
// pthread_atfork handlers do not run for _Fork and raw clone, and getpid() at each event
// costs more than the event. On kernels before 4.14 an atfork handler clears the page.
// Any thread; nothing here allocates or throws.
#pragma once

#include <atomic>
#include <cstdint>

namespace idlescope::emit {

enum class ProcessState : uint32_t {
  kNew = 0,  // no event yet in this process: the file is made at the first one
  kRecording = 1,
  kOff = 2,  // disabled, dormant rank, or given up
};

struct ForkPage {
  std::atomic<uint32_t> state;    // ProcessState
  std::atomic<int32_t> lock;      // 0 free, 1 held, 2 held and somebody waits
  std::atomic<uint32_t> once[8];  // "done once in this process" marks of other folders
};

// Never null. Before `make_fork_page` it is an ordinary static page in state kOff.
ForkPage* fork_page();
// Called once, by the library's constructor.
void make_fork_page();

// Futex lock on the fork page. Held for microseconds, never over a call into CUDA or Python.
void lock_process();
void unlock_process();

class ProcessLock {
 public:
  ProcessLock() { lock_process(); }
  ~ProcessLock() { unlock_process(); }
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
};

}  // namespace idlescope::emit
