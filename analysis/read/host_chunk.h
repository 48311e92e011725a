// Decodes the fixed-size host records of a HostChunk (layout: proto/README.md).
//
// In: the serialised HostChunk, possibly cut at its end. Out: one HostEvent per committed
// record, values as recorded (name ids not yet resolved), in reservation order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::read {

struct HostChunkCounts {
  uint64_t committed = 0;
  uint64_t holes = 0;          // uncommitted records before the last committed one
  uint64_t unknown_kinds = 0;  // written by a newer recorder; not delivered
  bool bad_layout = false;     // record size that this reader does not know
};

// Records that are equal to one in `copy` (raw records too) are left out: they were copied
// from here (trace.proto, HostChunk.moved_from).
HostChunkCounts decode_host_chunk(std::string_view chunk, bool cut, std::vector<HostEvent>& out,
                                  std::string_view copy = {});

struct HostChunkPlace {
  std::string_view records;      // inside the chunk
  uint64_t moved_from = 0;       // a copy, of records at this offset of the file
  uint64_t original_offset = 0;  // where `records` was in the file; 0: where it is
};
HostChunkPlace host_chunk_place(std::string_view chunk, bool cut);

}  // namespace idlescope::read
