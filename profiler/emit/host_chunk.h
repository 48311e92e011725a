// One mapped block of host records and its place in the file.
//
// Layout: proto/README.md, "Host chunks". A chunk is written with its full length before any
// event. Memory: either a shared mapping of the file, or private memory of which each
// committed record is written to the file (append sink).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/emit/host_record.h"

namespace idlescope::emit {

struct HostChunk {
  // Capacity (high half) and index of the next free record (low half) in one word: a thread
  // that stalls between taking an index and comparing it must not compare it with the
  // capacity of the chunk that has got this descriptor since.
  std::atomic<uint64_t> cursor{kClosed};
  uint32_t capacity = 0;  // under the process lock
  HostRecord* records = nullptr;
  uint64_t records_offset = 0;  // of records[0] in the file
  void* map = nullptr;          // null: this descriptor is free
  size_t map_bytes = 0;
  // Under the process lock. A full chunk is moved into a packet and then used again.
  enum class Use : uint8_t { kEvents, kBeingMoved, kEmpty } use = Use::kEvents;

  static constexpr uint64_t kClosed = UINT32_MAX / 2;  // capacity 0
  static constexpr uint32_t capacity_in(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static constexpr uint32_t index_in(uint64_t word) { return static_cast<uint32_t>(word); }

  void close() { cursor.store(kClosed, std::memory_order_relaxed); }
  // From here on threads may take records.
  void open(uint32_t records_in_it) {
    cursor.store(uint64_t{records_in_it} << 32, std::memory_order_release);
  }
  // A free record, or null: full.
  HostRecord* take() {
    const uint64_t word = cursor.fetch_add(1, std::memory_order_acquire);
    return index_in(word) < capacity_in(word) ? records + index_in(word) : nullptr;
  }
  uint32_t used() const {
    const uint64_t word = cursor.load(std::memory_order_relaxed);
    return index_in(word) < capacity_in(word) ? index_in(word) : capacity_in(word);
  }
  bool half_full() const {
    const uint64_t word = cursor.load(std::memory_order_relaxed);
    return index_in(word) >= capacity_in(word) / 2;
  }
  // Every record is committed: no thread will write here again. Under the process lock.
  bool complete() const;
};

// Bytes of a chunk packet with `capacity` records that starts at `offset`, up to its first
// record, and in all.
size_t chunk_prefix_bytes(uint64_t offset);
size_t chunk_packet_bytes(uint64_t offset, uint32_t capacity);
// Writes the prefix (tag, lengths, padding) of exactly chunk_prefix_bytes(offset).
void write_chunk_prefix(uint8_t* out, uint64_t offset, uint32_t capacity);

}  // namespace idlescope::emit
