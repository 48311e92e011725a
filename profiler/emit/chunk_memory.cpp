#include "profiler/emit/chunk_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/emit/file_placement.h"

namespace idlescope::emit {
namespace {

constexpr uint64_t kLeastPageBytes = 4096;
constexpr size_t kRecordAlignment = 64;

uint64_t page_bytes() {
  const long page = sysconf(_SC_PAGESIZE);
  return page > 0 ? static_cast<uint64_t>(page) : kLeastPageBytes;
}

void place_records(HostChunk* chunk, uint8_t* packet, uint64_t begin, uint32_t capacity) {
  const size_t prefix_bytes = chunk_prefix_bytes(begin);
  chunk->records = reinterpret_cast<HostRecord*>(packet + prefix_bytes);
  chunk->records_offset = begin + prefix_bytes;
  chunk->use = HostChunk::Use::kEvents;
  chunk->capacity = capacity;
}

}  // namespace

int map_chunk(HostChunk* chunk, int descriptor, uint64_t begin, uint32_t capacity) {
  const size_t packet_bytes = chunk_packet_bytes(begin, capacity);
  // Room first: a shared mapping of a full disk raises SIGBUS (tried: rc 135).
  const int error = allocate_range(descriptor, begin, packet_bytes);
  if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) return kNotMappable;
  if (error != 0) return error;
  const uint64_t map_begin = begin & ~(page_bytes() - 1);
  const size_t map_bytes = begin + packet_bytes - map_begin;
  void* map = mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                   static_cast<off_t>(map_begin));
  if (map == MAP_FAILED) return kNotMappable;
  madvise(map, map_bytes, MADV_DONTFORK);
  chunk->map = map;
  chunk->map_bytes = map_bytes;
  uint8_t* packet = static_cast<uint8_t*>(map) + (begin - map_begin);
  write_chunk_prefix(packet, begin, capacity);
  place_records(chunk, packet, begin, capacity);
  return 0;
}

int keep_chunk_in_memory(HostChunk* chunk, int descriptor, uint64_t begin, uint32_t capacity) {
  const size_t packet_bytes = chunk_packet_bytes(begin, capacity);
  const size_t map_bytes = packet_bytes + kRecordAlignment;
  void* memory =
      mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  chunk->map = memory;
  chunk->map_bytes = map_bytes;
  uint8_t* packet = static_cast<uint8_t*>(memory) + begin % kRecordAlignment;
  write_chunk_prefix(packet, begin, capacity);
  const int error = write_all_at(descriptor, packet, packet_bytes, begin);
  if (error != 0) {
    release_chunk_memory(chunk);
    return error;
  }
  place_records(chunk, packet, begin, capacity);
  return 0;
}

void release_chunk_memory(HostChunk* chunk) {
  if (chunk->map != nullptr) munmap(chunk->map, chunk->map_bytes);
  chunk->map = nullptr;
}

}  // namespace idlescope::emit
