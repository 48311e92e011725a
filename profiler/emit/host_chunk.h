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
  std::atomic<uint32_t> next{UINT32_MAX / 2};  // index of the next free record
  uint32_t capacity = 0;
  HostRecord* records = nullptr;
  uint64_t records_offset = 0;  // of records[0] in the file
  void* map = nullptr;          // null: this descriptor is free
  size_t map_bytes = 0;

  uint32_t used() const {
    const uint32_t reserved = next.load(std::memory_order_relaxed);
    return reserved < capacity ? reserved : capacity;
  }
  // Every record is committed: no thread will write here again.
  bool complete() const;
};

// Bytes of a chunk packet with `capacity` records that starts at `offset`, up to its first
// record, and in all.
size_t chunk_prefix_bytes(uint64_t offset);
size_t chunk_packet_bytes(uint64_t offset, uint32_t capacity);
// Writes the prefix (tag, lengths, padding) of exactly chunk_prefix_bytes(offset).
void write_chunk_prefix(uint8_t* out, uint64_t offset, uint32_t capacity);

}  // namespace idlescope::emit
