// A full host chunk as one compressed packet, so that its place in the file can be used again.
//
// In: the records of a chunk that no thread writes to any more, and where they are in the
// file. Out: an encoded trace.Packet for append_packet. Drain thread only; no file access.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/grow_array.h"
#include "profiler/emit/host_record.h"

struct ZSTD_CCtx_s;

namespace idlescope::emit {

class ChunkPacker {
 public:
  ChunkPacker() = default;
  ~ChunkPacker();
  ChunkPacker(const ChunkPacker&) = delete;
  ChunkPacker& operator=(const ChunkPacker&) = delete;

  // False: no memory.
  bool pack(const HostRecord* records, uint32_t count, uint64_t records_offset);
  // Of the last pack().
  const uint8_t* data() const { return packed_.data(); }
  size_t size() const { return packed_size_; }

 private:
  GrowArray<uint8_t> plain_;
  GrowArray<uint8_t> packed_;
  size_t packed_size_ = 0;
  ZSTD_CCtx_s* zstd_ = nullptr;
};

}  // namespace idlescope::emit
