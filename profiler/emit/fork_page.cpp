#include "profiler/emit/fork_page.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>

namespace idlescope::emit {
namespace {

constexpr size_t kPageBytes = 4096;

alignas(64) ForkPage early_page{{static_cast<uint32_t>(ProcessState::kOff)}, {0}, {}};
ForkPage* page = &early_page;

void clear_in_child() { memset(static_cast<void*>(page), 0, sizeof *page); }

void futex(std::atomic<int32_t>* word, int operation, int value) {
  syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

ForkPage* fork_page() { return page; }

void make_fork_page() {
  if (page != &early_page) return;
  void* memory =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;  // stays off
  page = static_cast<ForkPage*>(memory);
  if (madvise(memory, kPageBytes, MADV_WIPEONFORK) != 0) {
    pthread_atfork(nullptr, nullptr, clear_in_child);
  }
}

// The three-state futex lock of U. Drepper, "Futexes are tricky", section 5.
void lock_process() {
  std::atomic<int32_t>& word = page->lock;
  int32_t expected = 0;
  if (word.compare_exchange_strong(expected, 1, std::memory_order_acquire)) return;
  if (expected != 2) expected = word.exchange(2, std::memory_order_acquire);
  while (expected != 0) {
    futex(&word, FUTEX_WAIT_PRIVATE, 2);
    expected = word.exchange(2, std::memory_order_acquire);
  }
}

void unlock_process() {
  if (page->lock.exchange(0, std::memory_order_release) == 2) {
    futex(&page->lock, FUTEX_WAKE_PRIVATE, 1);
  }
}

}  // namespace idlescope::emit
