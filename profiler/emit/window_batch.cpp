#include "profiler/emit/window_batch.h"

#include <zstd.h>

#include <cstring>

#include "profiler/emit/wire_writer.h"

namespace idlescope::emit {
namespace {

// Field numbers of trace.proto.
constexpr uint32_t kTracePacket = 1;
constexpr uint32_t kPacketDescriptors = 8;
constexpr uint32_t kPacketGpuOps = 9;
constexpr uint32_t kPacketHostCalls = 10;
constexpr uint32_t kPacketOverheads = 14;
constexpr uint32_t kPacketZstdTrace = 31;
constexpr uint32_t kDescriptorsGpuOp = 1;
constexpr uint32_t kDescriptorsHostCall = 2;
constexpr uint32_t kBatchWindow = 1;
constexpr uint32_t kBatchBase = 2;
constexpr uint32_t kBatchDescriptor = 3;
constexpr uint32_t kBatchCorrelationDelta = 6;
constexpr uint32_t kBatchResult = 7;
constexpr uint32_t kBatchGapChange = 8;
constexpr uint32_t kBatchDurationChange = 9;
constexpr uint32_t kOverheadsBase = 3;
constexpr uint32_t kOverheadsKind = 4;
constexpr uint32_t kOverheadsThread = 5;
constexpr uint32_t kOverheadsGap = 6;
constexpr uint32_t kOverheadsDuration = 7;
constexpr uint32_t kOverheadsCorrelationDelta = 8;

// Ops "of a kind" (GpuOpBatch): those whose descriptor ids agree in this many low bits.
constexpr uint32_t kKinds = 1 << 10;

// Upper bounds of one encoded element.
constexpr size_t kColumnBytesMax = 5 + 10 + 10 + 6 + 10;
constexpr size_t kGpuOpDescriptorBytesMax = 23 * 12;
constexpr size_t kHostCallDescriptorBytesMax = 10 * 12;
constexpr size_t kOverheadBytesMax = 48;
constexpr size_t kFixedBytes = 512;

// Level 1 would be faster, but at 3 the drain thread still needs under 0.1 us a record
// (tests/bench, window_batch) and the file is smaller.
constexpr int kCompressionLevel = 3;

void write_op_descriptor(WireWriter* out, uint32_t id, const GpuOpKey& key) {
  const size_t mark = out->begin(kDescriptorsGpuOp);
  out->uint_field(1, id);
  out->uint_field(2, key.kind);
  out->uint_field_if(3, key.name_id);
  out->uint_field_if(4, key.device_id);
  out->uint_field_if(5, key.context_id);
  out->uint_field_if(6, key.stream_id);
  for (uint32_t i = 0; i < 3; ++i) out->uint_field_if(7 + i, key.grid[i]);
  for (uint32_t i = 0; i < 3; ++i) out->uint_field_if(10 + i, key.block[i]);
  out->uint_field_if(13, key.registers_per_thread);
  out->uint_field_if(14, key.static_shared_bytes);
  out->uint_field_if(15, key.dynamic_shared_bytes);
  out->uint_field_if(16, key.copy_kind);
  out->uint_field_if(17, key.src_kind);
  out->uint_field_if(18, key.dst_kind);
  out->uint_field_if(19, key.bytes);
  out->uint_field_if(20, key.peer_device_id_plus_1);
  out->uint_field_if(21, key.graph_id);
  out->uint_field_if(22, key.graph_node_id);
  out->uint_field_if(23, key.is_async);
  out->end(mark);
}

void write_call_descriptor(WireWriter* out, uint32_t id, const HostCallKey& key) {
  const size_t mark = out->begin(kDescriptorsHostCall);
  out->uint_field(1, id);
  out->uint_field(2, key.call_class);
  out->uint_field_if(3, key.name_id);
  out->uint_field_if(4, key.domain);
  out->uint_field_if(5, key.thread_id);
  out->uint_field_if(6, key.stream_handle);
  out->uint_field_if(7, key.context_id);
  out->uint_field_if(8, key.bytes);
  out->uint_field_if(9, key.copy_kind);
  out->uint_field_if(10, key.object);
  out->end(mark);
}

// sint32: the difference wraps modulo 2^32.
template <typename Rows, typename IdOf>
void write_correlations(WireWriter* out, const Rows& rows, IdOf id_of) {
  uint32_t last = 0;
  for (const auto& row : rows) {
    const uint32_t id = id_of(row);
    out->raw_varint(static_cast<uint32_t>(zigzag(static_cast<int32_t>(id - last))));
    last = id;
  }
}

void write_columns(WireWriter* out, uint32_t field, uint32_t window_id, const BatchColumns& rows) {
  const size_t packet = out->begin(kTracePacket);
  const size_t batch = out->begin(field);
  out->uint_field(kBatchWindow, window_id);
  const int64_t base = rows.begin_ns[0];
  out->int_field(kBatchBase, base);

  size_t mark = out->begin(kBatchDescriptor);
  for (const uint32_t id : rows.descriptor) out->raw_varint(id);
  out->end(mark);

  int64_t last[kKinds] = {};
  mark = out->begin(kBatchGapChange);
  int64_t previous_end = base;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t gap = rows.begin_ns[i] - previous_end;
    int64_t& of_its_kind = last[rows.descriptor[i] % kKinds];
    out->raw_varint(zigzag(gap - of_its_kind));
    of_its_kind = gap;
    previous_end = rows.end_ns[i];
  }
  out->end(mark);

  memset(last, 0, sizeof last);
  mark = out->begin(kBatchDurationChange);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t duration = rows.end_ns[i] - rows.begin_ns[i];
    int64_t& of_its_kind = last[rows.descriptor[i] % kKinds];
    out->raw_varint(zigzag(duration - of_its_kind));
    of_its_kind = duration;
  }
  out->end(mark);

  mark = out->begin(kBatchCorrelationDelta);
  write_correlations(out, rows.correlation, [](uint32_t correlation) { return correlation; });
  out->end(mark);

  if (rows.any_result) {
    mark = out->begin(kBatchResult);
    for (const int32_t result : rows.result) {
      out->raw_varint(static_cast<uint64_t>(int64_t{result}));
    }
    out->end(mark);
  }
  out->end(batch);
  out->end(packet);
}

void write_overheads(WireWriter* out, uint32_t window_id, const GrowArray<OverheadSpan>& spans) {
  const size_t packet = out->begin(kTracePacket);
  const size_t batch = out->begin(kPacketOverheads);
  out->uint_field(kBatchWindow, window_id);
  const int64_t base = spans[0].begin_ns;
  out->int_field(kOverheadsBase, base);
  size_t mark = out->begin(kOverheadsKind);
  for (const OverheadSpan& span : spans) out->raw_varint(span.kind);
  out->end(mark);
  mark = out->begin(kOverheadsThread);
  for (const OverheadSpan& span : spans) out->raw_varint(span.thread_id);
  out->end(mark);
  mark = out->begin(kOverheadsGap);
  int64_t previous_end = base;
  for (const OverheadSpan& span : spans) {
    out->raw_varint(zigzag(span.begin_ns - previous_end));
    previous_end = span.end_ns;
  }
  out->end(mark);
  mark = out->begin(kOverheadsDuration);
  for (const OverheadSpan& span : spans) {
    out->raw_varint(static_cast<uint64_t>(span.end_ns - span.begin_ns));
  }
  out->end(mark);
  mark = out->begin(kOverheadsCorrelationDelta);
  write_correlations(out, spans, [](const OverheadSpan& span) { return span.correlation_id; });
  out->end(mark);
  out->end(batch);
  out->end(packet);
}

}  // namespace

void BatchColumns::clear() {
  descriptor.clear();
  begin_ns.clear();
  end_ns.clear();
  correlation.clear();
  result.clear();
  any_result = false;
}

bool BatchColumns::add(uint32_t descriptor_id, int64_t begin, int64_t end, uint32_t correlation_id,
                       int32_t call_result) {
  const size_t size = descriptor.size() + 1;
  if (!descriptor.reserve(size) || !begin_ns.reserve(size) || !end_ns.reserve(size) ||
      !correlation.reserve(size) || !result.reserve(size)) {
    return false;
  }
  const bool kept = descriptor.push_back(descriptor_id) && begin_ns.push_back(begin) &&
                    end_ns.push_back(end) && correlation.push_back(correlation_id) &&
                    result.push_back(call_result);
  any_result = any_result || call_result != 0;
  return kept;
}

WindowBatch::~WindowBatch() { ZSTD_freeCCtx(zstd_); }

void WindowBatch::start_window(uint32_t window_id) {
  if (window_id != window_id_) flush();
  window_id_ = window_id;
}

bool WindowBatch::add_op(const GpuOp& op) {
  if (ops_.size() >= kMaxElements || op_keys_.full()) flush();
  const uint32_t id = op_keys_.id(op.key);
  if (id == 0 || !ops_.add(id, op.begin_ns, op.end_ns, op.correlation_id, 0)) {
    ++lost_;
    return false;
  }
  return true;
}

bool WindowBatch::add_call(const HostCall& call) {
  if (calls_.size() >= kMaxElements || call_keys_.full()) flush();
  const uint32_t id = call_keys_.id(call.key);
  if (id == 0 || !calls_.add(id, call.begin_ns, call.end_ns, call.correlation_id, call.result)) {
    ++lost_;
    return false;
  }
  return true;
}

bool WindowBatch::add_overhead(const OverheadSpan& span) {
  if (overheads_.size() >= kMaxElements) flush();
  if (!overheads_.push_back(span)) {
    ++lost_;
    return false;
  }
  return true;
}

bool WindowBatch::flush() {
  if (pending() == 0) return true;
  const bool kept = encode_and_write();
  if (kept) {
    ops_written_ += ops_.size();
    calls_written_ += calls_.size();
  } else {
    lost_ += pending();
    op_keys_.forget();
    call_keys_.forget();
  }
  clear_pending();
  return kept;
}

void WindowBatch::clear_pending() {
  ops_.clear();
  calls_.clear();
  overheads_.clear();
  op_keys_.mark_written();
  call_keys_.mark_written();
}

bool WindowBatch::encode_and_write() {
  const auto fresh_ops = static_cast<size_t>(op_keys_.fresh_end() - op_keys_.fresh_begin());
  const auto fresh_calls = static_cast<size_t>(call_keys_.fresh_end() - call_keys_.fresh_begin());
  const size_t bound = kFixedBytes + (ops_.size() + calls_.size()) * kColumnBytesMax +
                       fresh_ops * kGpuOpDescriptorBytesMax +
                       fresh_calls * kHostCallDescriptorBytesMax +
                       overheads_.size() * kOverheadBytesMax;
  if (!plain_.resize(bound)) return false;
  WireWriter out(plain_.data(), plain_.size());

  if (fresh_ops + fresh_calls != 0) {
    const size_t packet = out.begin(kTracePacket);
    const size_t table = out.begin(kPacketDescriptors);
    for (const auto* entry = op_keys_.fresh_begin(); entry != op_keys_.fresh_end(); ++entry) {
      write_op_descriptor(&out, entry->id, entry->key);
    }
    for (const auto* entry = call_keys_.fresh_begin(); entry != call_keys_.fresh_end(); ++entry) {
      write_call_descriptor(&out, entry->id, entry->key);
    }
    out.end(table);
    out.end(packet);
  }
  if (ops_.size() != 0) write_columns(&out, kPacketGpuOps, window_id_, ops_);
  if (calls_.size() != 0) write_columns(&out, kPacketHostCalls, window_id_, calls_);
  if (!overheads_.empty()) write_overheads(&out, window_id_, overheads_);
  if (!out.ok()) return false;

  if (zstd_ == nullptr) zstd_ = ZSTD_createCCtx();
  const size_t frame_bound = ZSTD_compressBound(out.size());
  if (zstd_ == nullptr || !packed_.resize(frame_bound + 16)) return false;
  // The frame goes behind the largest possible tag and length, which are then written just
  // before it.
  constexpr size_t kHead = 2 + WireWriter::kLengthBytes;
  const size_t frame = ZSTD_compressCCtx(zstd_, packed_.data() + kHead, frame_bound, out.data(),
                                         out.size(), kCompressionLevel);
  if (ZSTD_isError(frame) || frame > WireWriter::kMaxNestedBytes) return false;
  WireWriter head(packed_.data(), kHead);
  const size_t mark = head.begin(kPacketZstdTrace);
  if (!head.ok()) return false;
  put_padded_varint(packed_.data() + mark, frame, WireWriter::kLengthBytes);
  packet_bytes_ += head.size() + frame;
  return sink_(packed_.data(), head.size() + frame);
}

}  // namespace idlescope::emit
