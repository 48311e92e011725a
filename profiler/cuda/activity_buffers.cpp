#include "profiler/cuda/activity_buffers.h"

#include <sys/mman.h>

#include <cstring>

namespace idlescope::cuda {
namespace {

// In front of the data, so that `complete` finds the slot of a pointer: 64 bytes keep CUPTI's
// required alignment of 8 and a cache line apart.
constexpr size_t kHeadBytes = 64;
constexpr uint64_t kMagic = 0x6275666665727321u;

struct Head {
  uint64_t magic;
  uint32_t index;
};

constinit ActivityBuffers buffers_of_process;

}  // namespace

ActivityBuffers& activity_buffers() { return buffers_of_process; }

uint8_t* ActivityBuffers::request(size_t* size) {
  *size = 0;
  uint32_t index = free_.pop([this](uint32_t i) { return &slots_[i].next; });
  if (index == IndexStack::kNone) {
    index = count_.load(std::memory_order_relaxed);
    do {
      if (index >= kMaxBuffers) return nullptr;
    } while (!count_.compare_exchange_weak(index, index + 1, std::memory_order_acq_rel));
  }
  Slot& slot = slots_[index];
  if (slot.data == nullptr) {
    void* memory = mmap(nullptr, kHeadBytes + kBufferBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      free_.push(index, &slot.next);
      return nullptr;
    }
    const Head head = {kMagic, index};
    memcpy(memory, &head, sizeof head);
    slot.data = static_cast<uint8_t*>(memory) + kHeadBytes;
  }
  slot.state.store(kHeld, std::memory_order_release);
  *size = kBufferBytes;
  return slot.data;
}

bool ActivityBuffers::complete(uint8_t* data, size_t valid_bytes) {
  if (data == nullptr) return true;
  Head head;
  memcpy(&head, data - kHeadBytes, sizeof head);
  if (head.magic != kMagic || head.index >= kMaxBuffers) return false;
  Slot& slot = slots_[head.index];
  uint32_t held = kHeld;
  if (slot.data != data ||
      !slot.state.compare_exchange_strong(held, kFull, std::memory_order_acq_rel)) {
    return false;
  }
  slot.valid_bytes = valid_bytes <= kBufferBytes ? valid_bytes : kBufferBytes;
  filled_.push(head.index, &slot.next);
  return true;
}

uint32_t ActivityBuffers::held() const {
  uint32_t held = 0;
  const uint32_t count = count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    held += slots_[i].state.load(std::memory_order_acquire) == kHeld ? 1 : 0;
  }
  return held;
}

uint32_t ActivityBuffers::forget_held() {
  uint32_t taken = 0;
  const uint32_t count = count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t held = kHeld;
    if (slots_[i].state.compare_exchange_strong(held, kFree, std::memory_order_acq_rel)) {
      free_.push(i, &slots_[i].next);
      ++taken;
    }
  }
  return taken;
}

}  // namespace idlescope::cuda
