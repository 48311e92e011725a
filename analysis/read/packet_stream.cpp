#include "analysis/read/packet_stream.h"

#include <algorithm>

namespace idlescope::read {
namespace {

constexpr uint64_t kPacketTag = 0x0A;  // Trace.packet, length-delimited
constexpr uint32_t kHostChunkField = 11;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// Removes the value of an unknown field. False: cut or impossible.
bool skip_value(std::string_view& bytes, uint64_t wire_type) {
  uint64_t value = 0;
  switch (wire_type) {
    case kVarint:
      return take_varint(bytes, value);
    case kFixed64:
    case kFixed32: {
      const size_t size = wire_type == kFixed64 ? 8 : 4;
      if (bytes.size() < size) return false;
      bytes.remove_prefix(size);
      return true;
    }
    case kLength:
      if (!take_varint(bytes, value) || value > bytes.size()) return false;
      bytes.remove_prefix(static_cast<size_t>(value));
      return true;
    default:
      return false;
  }
}

// Finds the body among the fields of a packet; the last one wins, as for any oneof. A packet
// that a newer writer extended keeps its known body.
void find_body(std::string_view packet, bool cut, PacketSlice& slice) {
  while (!packet.empty()) {
    uint64_t tag = 0;
    if (!take_varint(packet, tag)) return;
    if ((tag & 7) != kLength) {
      if (!skip_value(packet, tag & 7)) return;
      continue;
    }
    uint64_t size = 0;
    if (!take_varint(packet, size)) return;
    if (size > packet.size() && !cut) return;
    const size_t kept = static_cast<size_t>(std::min<uint64_t>(size, packet.size()));
    slice.field = static_cast<uint32_t>(tag >> 3);
    slice.body = packet.substr(0, kept);
    packet.remove_prefix(kept);
  }
}

}  // namespace

bool take_varint(std::string_view& bytes, uint64_t& value) {
  uint64_t result = 0;
  const size_t limit = std::min<size_t>(bytes.size(), 10);
  for (size_t i = 0; i < limit; ++i) {
    const uint64_t byte = static_cast<unsigned char>(bytes[i]);
    result |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      value = result;
      bytes.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

std::optional<PacketSlice> PacketStream::stop(End end, uint64_t offset) {
  end_ = end;
  end_offset_ = offset;
  rest_ = {};
  return std::nullopt;
}

std::optional<PacketSlice> PacketStream::next() {
  while (end_ == End::kNotYet) {
    const uint64_t offset = position();
    if (rest_.empty()) return stop(End::kComplete, offset);
    if (rest_.front() == '\0') {
      const size_t used = rest_.find_first_not_of('\0');
      if (used == std::string_view::npos) return stop(End::kReserved, offset);
      if (holes_++ == 0) first_hole_offset_ = offset;
      rest_.remove_prefix(used);
      continue;
    }
    std::string_view cursor = rest_;
    uint64_t tag = 0;
    if (!take_varint(cursor, tag)) {
      return stop(cursor.size() < 10 ? End::kTruncated : End::kCorrupt, offset);
    }
    if (tag != kPacketTag) {
      // A field that a newer format put beside `packet`.
      if ((tag >> 3) <= 1 || !skip_value(cursor, tag & 7)) return stop(End::kCorrupt, offset);
      rest_ = cursor;
      continue;
    }
    uint64_t size = 0;
    if (!take_varint(cursor, size)) {
      return stop(cursor.size() < 10 ? End::kTruncated : End::kCorrupt, offset);
    }
    PacketSlice slice;
    slice.offset = offset;
    if (size > cursor.size()) {
      slice.cut = true;
      find_body(cursor, true, slice);
      stop(End::kTruncated, offset);
      if (slice.field == kHostChunkField) return slice;
      return std::nullopt;
    }
    find_body(cursor.substr(0, static_cast<size_t>(size)), false, slice);
    rest_ = cursor.substr(static_cast<size_t>(size));
    return slice;
  }
  return std::nullopt;
}

}  // namespace idlescope::read
