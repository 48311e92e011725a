#include "profiler/emit/chunk_packer.h"

#include <zstd.h>

#include "profiler/emit/wire_writer.h"

namespace idlescope::emit {
namespace {

// Field numbers of trace.proto.
constexpr uint32_t kTracePacket = 1;
constexpr uint32_t kPacketHostChunk = 11;
constexpr uint32_t kPacketZstdTrace = 31;
constexpr uint32_t kChunkRecordBytes = 2;
constexpr uint32_t kChunkRawEvents = 3;
constexpr uint32_t kChunkMovedFrom = 4;

// Host records hardly shrink further at higher levels (31 bytes a step at 1, 35 at 3, 33 at 6).
constexpr int kCompressionLevel = 1;
constexpr size_t kHeadBytes = 64;

}  // namespace

ChunkPacker::~ChunkPacker() { ZSTD_freeCCtx(zstd_); }

bool ChunkPacker::pack(const HostRecord* records, uint32_t count, uint64_t records_offset) {
  packed_size_ = 0;
  const size_t raw_bytes = size_t{count} * sizeof(HostRecord);
  if (!plain_.resize(raw_bytes + kHeadBytes)) return false;
  WireWriter plain(plain_.data(), plain_.size());
  const size_t packet = plain.begin(kTracePacket);
  const size_t chunk = plain.begin(kPacketHostChunk);
  plain.uint_field(kChunkRecordBytes, sizeof(HostRecord));
  plain.uint_field(kChunkMovedFrom, records_offset);
  plain.bytes_field(kChunkRawEvents, records, raw_bytes);
  plain.end(chunk);
  plain.end(packet);
  if (!plain.ok()) return false;

  if (zstd_ == nullptr) zstd_ = ZSTD_createCCtx();
  const size_t bound = ZSTD_compressBound(plain.size());
  // The frame goes behind the largest possible tag and length, as in WindowBatch.
  constexpr size_t kHead = 2 + WireWriter::kLengthBytes;
  if (zstd_ == nullptr || !packed_.resize(kHead + bound)) return false;
  const size_t frame = ZSTD_compressCCtx(zstd_, packed_.data() + kHead, bound, plain.data(),
                                         plain.size(), kCompressionLevel);
  if (ZSTD_isError(frame) != 0 || frame > WireWriter::kMaxNestedBytes) return false;
  WireWriter head(packed_.data(), kHead);
  const size_t mark = head.begin(kPacketZstdTrace);
  if (!head.ok()) return false;
  put_padded_varint(packed_.data() + mark, frame, WireWriter::kLengthBytes);
  packed_size_ = head.size() + frame;
  return true;
}

}  // namespace idlescope::emit
