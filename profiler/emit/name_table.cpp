#include "profiler/emit/name_table.h"

#include <sys/mman.h>

#include <cstring>

namespace idlescope::emit {
namespace {

constexpr size_t kFirstCapacity = 256;

uint64_t hash_text(const char* text, size_t size) {
  // FNV-1a, then a finaliser so that the low bits are usable as a table index.
  uint64_t hash = 14695981039346656037ull;
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211ull;
  }
  hash ^= size;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdull;
  hash ^= hash >> 33;
  return hash == 0 ? 1 : hash;
}

// Length of the UTF-8 character at `text`, 0 if there is none (RFC 3629, section 4).
size_t utf8_length(const unsigned char* text, size_t size) {
  const unsigned char first = text[0];
  if (first < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  }
  if (length == 0 || length > size || text[1] < low || text[1] > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (text[i] < 0x80 || text[i] > 0xbf) return 0;
  }
  return length;
}

}  // namespace

size_t utf8_copy(char* out, size_t capacity, const char* text, size_t size) {
  const auto* in = reinterpret_cast<const unsigned char*>(text);
  size_t written = 0;
  for (size_t at = 0; at < size;) {
    const size_t length = utf8_length(in + at, size - at);
    if (written + (length == 0 ? 1 : length) > capacity) break;
    if (length == 0) {
      out[written++] = '?';
      ++at;
    } else {
      memcpy(out + written, in + at, length);
      written += length;
      at += length;
    }
  }
  return written;
}

NameTable::Slot* NameTable::find_slot(uint64_t key) const {
  size_t at = key & (capacity_ - 1);
  while (slots_[at].id != 0 && slots_[at].key != key) at = (at + 1) & (capacity_ - 1);
  return slots_ + at;
}

bool NameTable::grow() {
  const size_t capacity = capacity_ == 0 ? kFirstCapacity : capacity_ * 2;
  void* memory = mmap(nullptr, capacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  Slot* old = slots_;
  const size_t old_capacity = capacity_;
  slots_ = static_cast<Slot*>(memory);
  capacity_ = capacity;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].id != 0) *find_slot(old[i].key) = old[i];
  }
  if (old != nullptr) munmap(old, old_capacity * sizeof(Slot));
  return true;
}

NameTable::Answer NameTable::find_or_add(const char* text, size_t size) {
  if ((count_ + 1) * size_t{2} > capacity_ && !grow()) return {0, false};
  const uint64_t key = hash_text(text, size);
  Slot* slot = find_slot(key);
  if (slot->id != 0) return {slot->id, false};
  *slot = {key, ++count_};
  newest_key_ = key;
  return {count_, true};
}

void NameTable::drop_newest() {
  if (newest_key_ == 0) return;
  // The newest entry ends its probe chain, so freeing its slot breaks no other.
  Slot* slot = find_slot(newest_key_);
  if (slot->id == count_) {
    *slot = {0, 0};
    --count_;
  }
  newest_key_ = 0;
}

void NameTable::clear() {
  if (slots_ != nullptr) memset(slots_, 0, capacity_ * sizeof(Slot));
  count_ = 0;
  newest_key_ = 0;
}

}  // namespace idlescope::emit
