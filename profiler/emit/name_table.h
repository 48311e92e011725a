// Strings by id: which ids this process's file already has, and clean UTF-8.
//
// In: text from Python, CUDA, NVTX. Out: ids; the caller writes a NameTable packet for a new
// one. Used under the process lock; memory is mapped, never from malloc (this runs in forked
// children of threaded programs).
#pragma once

#include <cstddef>
#include <cstdint>

namespace idlescope::emit {

// Longer names are cut (C++ kernel names reach tens of kilobytes).
inline constexpr size_t kMaxNameBytes = 4096;

// Copies `size` bytes, replacing what is not UTF-8 by '?', cut at a character's border to
// fit `capacity`. Returns the number of bytes written; no terminator.
size_t utf8_copy(char* out, size_t capacity, const char* text, size_t size);

class NameTable {
 public:
  struct Answer {
    uint32_t id;  // 0: no memory
    bool is_new;  // the caller must write the entry
  };
  // The id of `text`, a new one if it was never seen. Names are told apart by a 64-bit hash
  // and their length: a collision among a million names has a chance below 1e-7.
  Answer find_or_add(const char* text, size_t size);
  // Takes back the newest entry, whose packet could not be written.
  void drop_newest();
  // Forgets everything (new process, new file); keeps the memory.
  void clear();

 private:
  struct Slot {
    uint64_t key;
    uint32_t id;  // 0: free
  };
  bool grow();
  Slot* find_slot(uint64_t key) const;

  Slot* slots_ = nullptr;
  size_t capacity_ = 0;  // a power of two
  uint32_t count_ = 0;
  uint64_t newest_key_ = 0;
};

}  // namespace idlescope::emit
