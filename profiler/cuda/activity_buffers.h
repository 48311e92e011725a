// Memory that CUPTI fills with activity records, and the way back to the drain thread.
//
//   request ──► free buffer ──► CUPTI fills it ──► complete ──► drain thread decodes ──► free
//
// In: CUPTI's two buffer callbacks. Out: filled buffers, oldest first. `request` and
// `complete` run on CUPTI's own thread and inside CUDA calls of application threads: they
// hand over and return, no lock, no decoding; a new buffer costs one mmap, at most
// kMaxBuffers of them. Small buffers (256 KiB, about 1200 kernels) bound what a killed
// process loses, because CUPTI keeps back a buffer with one unfinished record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/cuda/index_stack.h"

namespace idlescope::cuda {

class ActivityBuffers {
 public:
  static constexpr size_t kBufferBytes = 256 * 1024;
  static constexpr uint32_t kMaxBuffers = 512;

  struct Filled {
    uint8_t* data;
    size_t valid_bytes;
    uint32_t index;
  };

  // --- any thread
  // Null: no memory; CUPTI then drops records and counts them.
  uint8_t* request(size_t* size);
  // `data` came from request(). False: it did not (counted by the caller as a lost buffer).
  bool complete(uint8_t* data, size_t valid_bytes);

  // --- drain thread
  // Collects the buffers that came back, calls prepare(), then take(const Filled&) for each,
  // oldest first, and frees it.
  template <typename Prepare, typename Take>
  uint32_t drain(Prepare prepare, Take take) {
    uint32_t order[kMaxBuffers];
    uint32_t count = 0;
    const auto link = [this](uint32_t i) { return &slots_[i].next; };
    for (uint32_t index = filled_.pop(link); index != IndexStack::kNone && count < kMaxBuffers;
         index = filled_.pop(link)) {
      order[count++] = index;
    }
    prepare();
    for (uint32_t i = count; i-- > 0;) {
      Slot& slot = slots_[order[i]];
      take(Filled{slot.data, slot.valid_bytes, order[i]});
      slot.state.store(kFree, std::memory_order_relaxed);
      free_.push(order[i], &slot.next);
    }
    return count;
  }
  bool has_filled() const { return !filled_.empty(); }
  // Buffers that CUPTI holds now. After a finalize none will come back: see forget_held.
  uint32_t held() const;
  // Takes back what CUPTI kept over a finalize; returns how many.
  uint32_t forget_held();

 private:
  enum State : uint32_t { kUnmapped = 0, kFree, kHeld, kFull };
  struct Slot {
    std::atomic<uint32_t> next;
    std::atomic<uint32_t> state;
    uint8_t* data = nullptr;
    size_t valid_bytes = 0;
  };

  Slot slots_[kMaxBuffers];
  std::atomic<uint32_t> count_{0};
  IndexStack free_;
  IndexStack filled_;
};

// The one of this process: CUPTI's callbacks carry no user data.
ActivityBuffers& activity_buffers();

}  // namespace idlescope::cuda
