#include "analysis/read/trace_batches.h"

#include <algorithm>

#include "analysis/read/batch_columns.h"
#include "analysis/read/plausible_time.h"

namespace idlescope::read {
namespace {

// Both batch messages have the same columns; the decoders differ only in the lookup of a
// descriptor and in the record they make.
template <typename Batch, typename Lookup, typename Emit>
void decode(const std::vector<PacketSlice>& batches, const TraceTables& tables, Lookup lookup,
            Emit emit, BatchCounts& counts) {
  Batch batch;  // reused: keeps its columns' memory
  for (const PacketSlice& slice : batches) {
    batch.Clear();
    if (slice.body.size() > INT32_MAX ||
        !batch.ParseFromArray(slice.body.data(), static_cast<int>(slice.body.size()))) {
      if (counts.undecodable++ == 0) counts.undecodable_offset = slice.offset;
      continue;
    }
    use_plain_times(batch);
    const int size = std::min({batch.descriptor_id_size(), batch.begin_delta_ns_size(),
                               batch.duration_ns_size(), batch.correlation_delta_size()});
    const int longest = std::max({batch.descriptor_id_size(), batch.begin_delta_ns_size(),
                                  batch.duration_ns_size(), batch.correlation_delta_size()});
    if (size != longest) ++counts.uneven;
    const uint32_t window = tables.window(batch.window_id());
    const uint32_t* ids = batch.descriptor_id().data();
    const int64_t* begin_deltas = batch.begin_delta_ns().data();
    const uint64_t* durations = batch.duration_ns().data();
    const int32_t* correlation_deltas = batch.correlation_delta().data();
    // Unsigned: damaged deltas may wrap, which is checked below and must not be undefined.
    uint64_t begin = static_cast<uint64_t>(batch.base_ns());
    uint32_t correlation = 0;
    for (int i = 0; i < size; ++i) {
      begin += static_cast<uint64_t>(begin_deltas[i]);
      correlation += static_cast<uint32_t>(correlation_deltas[i]);
      const uint32_t descriptor = lookup(ids[i]);
      if (descriptor == kNone) {
        ++counts.missing_descriptors;
        continue;
      }
      const Ns begin_ns = static_cast<Ns>(begin);
      const Ns end_ns = static_cast<Ns>(begin + durations[i]);
      if (!plausible_span(begin_ns, end_ns)) {
        ++counts.bad_times;
        continue;
      }
      ++counts.records;
      emit(begin_ns, end_ns, descriptor, window, correlation);
    }
  }
}

// How many records a batch holds, so that the tables are allocated once: growing by doubling
// would cost up to three times their memory. A packed varint ends with a byte below 0x80; the
// shortest of the columns counts. The rare unpacked encoding counts as nothing.
size_t count_records(std::string_view body) {
  constexpr uint64_t kFirstColumn = 3;  // descriptor_id … duration_change_ns
  constexpr size_t kColumns = 7;
  size_t counts[kColumns] = {};
  uint64_t tag = 0;
  uint64_t value = 0;
  while (take_varint(body, tag) && take_varint(body, value)) {
    if ((tag & 7) == 0) continue;
    if ((tag & 7) != 2 || value > body.size()) break;
    const std::string_view column = body.substr(0, static_cast<size_t>(value));
    body.remove_prefix(column.size());
    const uint64_t index = (tag >> 3) - kFirstColumn;
    if (index >= kColumns) continue;
    counts[index] += static_cast<size_t>(
        std::count_if(column.begin(), column.end(), [](char byte) { return (byte & 0x80) == 0; }));
  }
  const size_t begins = std::max(counts[1], counts[5]);
  const size_t durations = std::max(counts[2], counts[6]);
  return std::min({counts[0], begins, durations, counts[3]});
}

size_t count_records(const std::vector<PacketSlice>& batches) {
  size_t records = 0;
  for (const PacketSlice& slice : batches) records += count_records(slice.body);
  return records;
}

}  // namespace

BatchHead peek_batch(std::string_view body) {
  BatchHead head;
  uint64_t tag = 0;
  uint64_t value = 0;
  while (take_varint(body, tag) && (tag & 7) == 0 && take_varint(body, value)) {
    if (tag >> 3 == 1) head.window_id = static_cast<uint32_t>(value);
    if (tag >> 3 == 2) head.base_ns = static_cast<Ns>(value);
  }
  return head;
}

void decode_gpu_ops(const std::vector<PacketSlice>& batches, const TraceTables& tables,
                    std::vector<Op>& out, BatchCounts& counts) {
  out.reserve(count_records(batches));
  decode<trace::GpuOpBatch>(
      batches, tables, [&](uint32_t id) { return tables.op_descriptor(id); },
      [&](Ns begin_ns, Ns end_ns, uint32_t descriptor, uint32_t window, uint32_t correlation) {
        out.push_back({begin_ns, end_ns, descriptor, kNone, window, correlation});
      },
      counts);
}

void decode_host_calls(const std::vector<PacketSlice>& batches, const TraceTables& tables,
                       std::vector<Call>& out, BatchCounts& counts) {
  out.reserve(count_records(batches));
  decode<trace::HostCallBatch>(
      batches, tables, [&](uint32_t id) { return tables.call_descriptor(id); },
      [&](Ns begin_ns, Ns end_ns, uint32_t descriptor, uint32_t window, uint32_t correlation) {
        out.push_back({begin_ns, end_ns, descriptor, window, correlation, kNone});
      },
      counts);
}

}  // namespace idlescope::read
