// Remembers the file's ids of names that come again and again (kernel names).
//
// In: text. Out: the id of emit::name_id, which takes a lock and writes; this asks it once
// per different text. Texts are told apart by length and a 64-bit hash, because CUPTI's
// name pointers do not outlive a detach. Drain thread only.
#pragma once

#include <cstdint>
#include <cstring>

#include "profiler/emit/grow_array.h"

namespace idlescope::emit {

using NameSource = uint32_t (*)(const char* text, size_t size);

class NameCache {
 public:
  explicit NameCache(NameSource source) : source_(source) {}

  uint32_t id(const char* text) {
    if (text == nullptr || *text == '\0') return 0;
    const size_t size = strlen(text);
    const uint64_t hash = hash_text(text, size);
    if (count_ * 2 >= slots_.size() && !grow()) return source_(text, size);
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    while (slots_[slot].id != 0) {
      if (slots_[slot].hash == hash && slots_[slot].size == size) return slots_[slot].id;
      slot = (slot + 1) & mask;
    }
    const uint32_t id = source_(text, size);
    if (id != 0) {
      slots_[slot] = {hash, static_cast<uint32_t>(size), id};
      ++count_;
    }
    return id;
  }

 private:
  struct Slot {
    uint64_t hash;
    uint32_t size;
    uint32_t id;  // 0: free
  };

  // Multiply-and-fold of eight bytes at a time.
  static uint64_t hash_text(const char* text, size_t size) {
    uint64_t hash = 0x9e3779b97f4a7c15u ^ size;
    for (size_t i = 0; i < size; i += 8) {
      uint64_t word = 0;
      memcpy(&word, text + i, size - i < 8 ? size - i : 8);
      hash = (hash ^ word) * 0xd6e8feb86659fd93u;
      hash ^= hash >> 32;
    }
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 29);
  }
  bool grow() {
    GrowArray<Slot> old;
    for (const Slot& slot : slots_) {
      if (slot.id != 0 && !old.push_back(slot)) return false;
    }
    const size_t size = slots_.empty() ? 512 : slots_.size() * 2;
    if (!slots_.resize(size)) return false;
    memset(static_cast<void*>(slots_.data()), 0, size * sizeof(Slot));
    for (const Slot& entry : old) {
      size_t slot = entry.hash & (size - 1);
      while (slots_[slot].id != 0) slot = (slot + 1) & (size - 1);
      slots_[slot] = entry;
    }
    return true;
  }

  NameSource source_;
  GrowArray<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace idlescope::emit
