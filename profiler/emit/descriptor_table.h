// Gives ids to what many device ops or host calls have in common.
//
// In: keys (device_record.h). Out: ids, dense from 1 per file, and the list of keys that got
// a new id since the last take. When the table reaches its limit it forgets the keys and goes
// on numbering, so a job with ever new sizes costs bytes in the file, not memory. Drain
// thread only.
#pragma once

#include <cstdint>
#include <cstring>

#include "profiler/emit/grow_array.h"

namespace idlescope::emit {

// FNV-1a over eight bytes at a time, finished with a mix; `size` is a multiple of 8.
inline uint64_t hash_key(const void* key, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(key);
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash ^ (hash >> 32);
}

template <typename Key>
class DescriptorTable {
 public:
  struct Entry {
    Key key;
    uint32_t id;
  };

  explicit DescriptorTable(size_t limit = size_t{1} << 17) : limit_(limit) {}

  // Id of `key`; 0 when there is no memory.
  uint32_t id(const Key& key) {
    static_assert(sizeof(Key) % 8 == 0);
    if (entries_.size() >= limit_) forget();
    if ((entries_.size() + 1) * 2 > slots_.size() && !rehash()) return 0;
    const size_t mask = slots_.size() - 1;
    size_t slot = hash_key(&key, sizeof key) & mask;
    while (slots_[slot] != 0) {
      const Entry& entry = entries_[slots_[slot] - 1];
      if (memcmp(&entry.key, &key, sizeof key) == 0) return entry.id;
      slot = (slot + 1) & mask;
    }
    if (!entries_.push_back({key, next_id_})) return 0;
    slots_[slot] = static_cast<uint32_t>(entries_.size());
    return next_id_++;
  }

  // Entries from `fresh_begin()` to the end are new since the last mark_written().
  const Entry* fresh_begin() const { return entries_.data() + written_; }
  const Entry* fresh_end() const { return entries_.data() + entries_.size(); }
  bool has_fresh() const { return written_ < entries_.size(); }
  void mark_written() { written_ = entries_.size(); }
  // A full table forgets at the next new key: write the fresh entries before that.
  bool full() const { return entries_.size() >= limit_; }
  // Keys seen so far get new ids (the file did not take their entries, or the table is full).
  void forget() {
    entries_.clear();
    written_ = 0;
    if (!slots_.empty()) memset(slots_.data(), 0, slots_.size() * sizeof(uint32_t));
  }

 private:
  bool rehash() {
    const size_t size = slots_.empty() ? 1024 : slots_.size() * 2;
    if (!slots_.resize(size)) return false;
    memset(slots_.data(), 0, size * sizeof(uint32_t));
    for (size_t i = 0; i < entries_.size(); ++i) {
      size_t slot = hash_key(&entries_[i].key, sizeof(Key)) & (size - 1);
      while (slots_[slot] != 0) slot = (slot + 1) & (size - 1);
      slots_[slot] = static_cast<uint32_t>(i + 1);
    }
    return true;
  }

  GrowArray<Entry> entries_;
  GrowArray<uint32_t> slots_;  // index into entries_ plus 1; 0: free
  size_t limit_;
  size_t written_ = 0;
  uint32_t next_id_ = 1;
};

}  // namespace idlescope::emit
