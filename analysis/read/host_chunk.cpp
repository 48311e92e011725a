#include "analysis/read/host_chunk.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "analysis/read/packet_stream.h"

namespace idlescope::read {
namespace {

static_assert(std::endian::native == std::endian::little, "records are read in place");

constexpr size_t kRecordBytes = 64;

template <typename T>
T load(const char* record, size_t offset) {
  T value;
  std::memcpy(&value, record + offset, sizeof value);
  return value;
}

struct Layout {
  uint64_t record_bytes = 0;
  HostChunkPlace place;
};

// The fields of HostChunk by hand: a parse would copy megabytes and could not be
// asked for what lies before a cut.
bool find_layout(std::string_view chunk, bool cut, Layout& layout) {
  while (!chunk.empty()) {
    uint64_t tag = 0;
    uint64_t value = 0;
    if (!take_varint(chunk, tag) || !take_varint(chunk, value)) return false;
    if (tag == (2 << 3 | 0)) {
      layout.record_bytes = value;
    } else if (tag == (4 << 3 | 0)) {
      layout.place.moved_from = value;
    } else if (tag == (5 << 3 | 0)) {
      layout.place.original_offset = value;
    } else if ((tag & 7) == 2) {
      if (value > chunk.size() && !cut) return false;
      const size_t kept = static_cast<size_t>(std::min<uint64_t>(value, chunk.size()));
      if (tag >> 3 == 3) layout.place.records = chunk.substr(0, kept);
      chunk.remove_prefix(kept);
    } else if ((tag & 7) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

HostChunkPlace host_chunk_place(std::string_view chunk, bool cut) {
  Layout layout;
  find_layout(chunk, cut, layout);
  return layout.place;
}

HostChunkCounts decode_host_chunk(std::string_view chunk, bool cut, std::vector<HostEvent>& out,
                                  std::string_view copy) {
  HostChunkCounts counts;
  Layout layout;
  const bool found = find_layout(chunk, cut, layout);
  // A later minor version may append to a record; the first 64 bytes keep their meaning.
  if (!found || layout.record_bytes < kRecordBytes || layout.record_bytes > 4096) {
    counts.bad_layout = !cut;
    return counts;
  }
  const size_t step = static_cast<size_t>(layout.record_bytes);
  const std::string_view records = layout.place.records;
  std::unordered_set<std::string_view> copied;
  for (size_t at = 0; at + step <= copy.size(); at += step) copied.insert(copy.substr(at, step));
  uint64_t skipped = 0;
  for (size_t at = 0; at + kRecordBytes <= records.size(); at += step) {
    const char* record = records.data() + at;
    const uint32_t kind = load<uint32_t>(record, 0);
    if (kind == 0) {
      ++skipped;
      continue;
    }
    counts.holes += skipped;
    skipped = 0;
    if (!copied.empty() && copied.count(records.substr(at, step)) != 0) continue;
    ++counts.committed;
    if (!trace::HostEventKind_IsValid(static_cast<int>(kind))) {
      ++counts.unknown_kinds;
      continue;
    }
    HostEvent event;
    event.kind = static_cast<trace::HostEventKind>(kind);
    event.thread_id = load<uint32_t>(record, 4);
    event.begin_ns = load<int64_t>(record, 8);
    event.end_ns = load<int64_t>(record, 16);
    event.iterator = load<uint32_t>(record, 24);
    event.epoch = load<uint32_t>(record, 28);
    event.batch = load<int64_t>(record, 32);
    event.a = load<int64_t>(record, 40);
    event.b = load<int64_t>(record, 48);
    event.c = load<int64_t>(record, 56);
    out.push_back(event);
  }
  return counts;
}

}  // namespace idlescope::read
