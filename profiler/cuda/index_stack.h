// A lock-free stack of small indices, for handing blocks of memory between threads.
//
// In, out: indices below 2^32 - 1 of slots whose `next` field the owner provides (the index
// plus 1, 0 at the bottom, so that zeroed memory is an empty stack). Push and
// pop from any thread, also inside CUDA callbacks: one compare-and-swap each, no allocation.
// The upper half of the head counts pushes, so that a slot that was taken and put back in
// between (ABA) is noticed.
#pragma once

#include <atomic>
#include <cstdint>

namespace idlescope::cuda {

class IndexStack {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  // `next` is the link of `index`; it must not move while the index is on a stack.
  void push(uint32_t index, std::atomic<uint32_t>* next) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    uint64_t desired = 0;
    do {
      next->store(static_cast<uint32_t>(head), std::memory_order_relaxed);
      desired = (((head >> 32) + 1) << 32) | (index + 1);
    } while (!head_.compare_exchange_weak(head, desired, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  }

  // `next_of(index)` returns the link of an index. kNone: empty.
  template <typename NextOf>
  uint32_t pop(NextOf next_of) {
    uint64_t head = head_.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(head) != 0) {
      const uint32_t index = static_cast<uint32_t>(head) - 1;
      const uint32_t next = next_of(index)->load(std::memory_order_relaxed);
      const uint64_t desired = (((head >> 32) + 1) << 32) | next;
      if (head_.compare_exchange_weak(head, desired, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        return index;
      }
    }
    return kNone;
  }

  bool empty() const { return static_cast<uint32_t>(head_.load(std::memory_order_acquire)) == 0; }

 private:
  std::atomic<uint64_t> head_{0};
};

}  // namespace idlescope::cuda
