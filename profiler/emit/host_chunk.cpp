#include "profiler/emit/host_chunk.h"

#include <cstring>

#include "profiler/emit/wire_writer.h"

namespace idlescope::emit {
namespace {

// The prefix, byte by byte (lengths are padded varints of five bytes):
//   0A len  5A len  0A pad …pad…  10 40  1A len
// Trace.packet  Packet.host_chunk  HostChunk.padding  record_bytes  raw_events
constexpr size_t kLengthBytes = 5;
constexpr size_t kFixedBytes = (1 + kLengthBytes) * 3 + 2 + 2;

size_t padding_bytes(uint64_t offset) { return (64 - (offset + kFixedBytes) % 64) % 64; }

uint8_t* put_length(uint8_t* out, uint8_t tag, uint64_t length) {
  *out++ = tag;
  put_padded_varint(out, length, kLengthBytes);
  return out + kLengthBytes;
}

}  // namespace

bool HostChunk::complete() const {
  if (used() < capacity) return false;
  for (uint32_t i = 0; i < capacity; ++i) {
    if (records[i].commit.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

size_t chunk_prefix_bytes(uint64_t offset) { return kFixedBytes + padding_bytes(offset); }

size_t chunk_packet_bytes(uint64_t offset, uint32_t capacity) {
  return chunk_prefix_bytes(offset) + size_t{capacity} * sizeof(HostRecord);
}

void write_chunk_prefix(uint8_t* out, uint64_t offset, uint32_t capacity) {
  const size_t padding = padding_bytes(offset);
  const size_t raw_bytes = size_t{capacity} * sizeof(HostRecord);
  const size_t chunk_bytes = 2 + padding + 2 + 1 + kLengthBytes + raw_bytes;
  uint8_t* const first = out;
  // The outer tag goes last: until then a reader sees unused room, not half a packet.
  out = put_length(first, 0, chunk_bytes + 1 + kLengthBytes);
  out = put_length(out, 0x5A, chunk_bytes);
  *out++ = 0x0A;
  *out++ = static_cast<uint8_t>(padding);
  memset(out, 0, padding);
  out += padding;
  *out++ = 0x10;
  *out++ = sizeof(HostRecord);
  put_length(out, 0x1A, raw_bytes);
  reinterpret_cast<std::atomic<uint8_t>*>(first)->store(0x0A, std::memory_order_release);
}

}  // namespace idlescope::emit
