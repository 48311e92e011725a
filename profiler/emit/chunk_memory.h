// The memory of a host chunk, and its prefix in the file.
//
// In: an open file, where the chunk begins, how many records it has. Out: a chunk whose
// records can be taken (the caller opens it). Two kinds: a shared mapping of room that was
// reserved first, or private memory of which the append sink writes each record. Under the
// process lock; opens nothing, reports nothing: answers are errno values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/host_chunk.h"

namespace idlescope::emit {

// The file system has no fallocate or refuses the mapping: private memory still works.
inline constexpr int kNotMappable = -1;

// Reserves room behind `begin` and maps it. 0, kNotMappable, or an errno (no room).
int map_chunk(HostChunk* chunk, int descriptor, uint64_t begin, uint32_t capacity);

// Private memory; writes the empty chunk to the file. 0 or an errno; then the file may hold a
// part of it.
int keep_chunk_in_memory(HostChunk* chunk, int descriptor, uint64_t begin, uint32_t capacity);

void release_chunk_memory(HostChunk* chunk);

}  // namespace idlescope::emit
