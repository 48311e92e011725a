#include "tests/properties/packets.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>

namespace idlescope::test {
namespace {

constexpr size_t kRawEventBytes = 64;  // proto/README.md, host chunks
constexpr size_t kRawBegin = 8;
constexpr size_t kRawEnd = 16;

std::string expanded(const std::string& frame) {
  std::string out;
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  std::string part(1 << 16, '\0');
  size_t left = 1;
  while (left != 0) {
    ZSTD_outBuffer to{part.data(), part.size(), 0};
    left = ZSTD_decompressStream(context, &to, &in);
    if (ZSTD_isError(left) != 0) throw std::runtime_error("damaged frame");
    out.append(part, 0, to.pos);
  }
  ZSTD_freeDCtx(context);
  return out;
}

void later(int64_t by_ns, int64_t* time) { *time += by_ns; }

void shift_raw_events(trace::HostChunk* chunk, int64_t by_ns) {
  std::string& raw = *chunk->mutable_raw_events();
  for (size_t at = 0; at + kRawEventBytes <= raw.size(); at += kRawEventBytes) {
    uint32_t commit = 0;
    std::memcpy(&commit, raw.data() + at, sizeof commit);
    if (commit == 0) continue;
    for (const size_t field : {kRawBegin, kRawEnd}) {
      int64_t time = 0;
      std::memcpy(&time, raw.data() + at + field, sizeof time);
      later(by_ns, &time);
      std::memcpy(raw.data() + at + field, &time, sizeof time);
    }
  }
}

template <typename Message>
void shift_span(Message* message, int64_t by_ns) {
  message->set_begin_ns(message->begin_ns() + by_ns);
  message->set_end_ns(message->end_ns() + by_ns);
}

void shift_pair(trace::ClockPair* pair, int64_t by_ns) {
  pair->set_monotonic_ns(pair->monotonic_ns() + by_ns);
  if (pair->cupti_ns() != 0) pair->set_cupti_ns(pair->cupti_ns() + by_ns);
}

constexpr uint32_t kKindsOfABatch = 1024;  // trace.proto, GpuOpBatch

// Times as format 1.1 may write them, and back. Damaged batches stay as they are.
template <typename Batch>
void write_changes(Batch* batch) {
  const int n = batch->descriptor_id_size();
  if (batch->begin_delta_ns_size() != n || batch->duration_ns_size() != n) return;
  std::map<uint32_t, std::pair<int64_t, int64_t>> last;
  int64_t before = 0;  // duration of the one before
  for (int i = 0; i < n; ++i) {
    auto& [last_gap, last_duration] = last[batch->descriptor_id(i) % kKindsOfABatch];
    const auto duration = static_cast<int64_t>(batch->duration_ns(i));
    const int64_t gap = batch->begin_delta_ns(i) - before;
    batch->add_gap_change_ns(gap - last_gap);
    batch->add_duration_change_ns(duration - last_duration);
    last_gap = gap;
    last_duration = before = duration;
  }
  batch->clear_begin_delta_ns();
  batch->clear_duration_ns();
}

template <typename Batch>
void write_plain(Batch* batch) {
  const int n = batch->descriptor_id_size();
  if (n == 0 || batch->gap_change_ns_size() != n || batch->duration_change_ns_size() != n) return;
  std::map<uint32_t, std::pair<int64_t, int64_t>> last;
  int64_t before = 0;
  for (int i = 0; i < n; ++i) {
    auto& [gap, duration] = last[batch->descriptor_id(i) % kKindsOfABatch];
    gap += batch->gap_change_ns(i);
    duration += batch->duration_change_ns(i);
    batch->add_begin_delta_ns(gap + before);
    batch->add_duration_ns(static_cast<uint64_t>(duration));
    before = duration;
  }
  batch->clear_gap_change_ns();
  batch->clear_duration_change_ns();
}

void write_overhead_columns(trace::OverheadBatch* batch) {
  int64_t end = 0;
  uint32_t correlation = 0;
  for (const trace::Overhead& one : batch->overhead()) {
    if (batch->kind_size() == 0) end = one.begin_ns();
    if (batch->kind_size() == 0) batch->set_base_ns(end);
    batch->add_kind(one.kind());
    batch->add_thread_id(one.thread_id());
    batch->add_gap_ns(one.begin_ns() - end);
    batch->add_duration_ns(static_cast<uint64_t>(one.end_ns() - one.begin_ns()));
    batch->add_correlation_delta(static_cast<int32_t>(one.correlation_id() - correlation));
    end = one.end_ns();
    correlation = one.correlation_id();
  }
  batch->clear_overhead();
}

// Columns hold differences to the element before.
template <typename Batch>
void shuffle_columns(Batch* batch, std::mt19937& random) {
  write_plain(batch);
  const int n = batch->descriptor_id_size();
  if (batch->begin_delta_ns_size() != n || batch->duration_ns_size() != n ||
      batch->correlation_delta_size() != n) {
    return;
  }
  std::vector<int64_t> begin;
  std::vector<int64_t> correlation;
  int64_t time = 0;
  int64_t id = 0;
  for (int i = 0; i < n; ++i) {
    begin.push_back(time += batch->begin_delta_ns(i));
    correlation.push_back(id += batch->correlation_delta(i));
  }
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  Batch out = *batch;
  time = id = 0;
  for (int i = 0; i < n; ++i) {
    const int from = order[static_cast<size_t>(i)];
    const auto f = static_cast<size_t>(from);
    out.set_descriptor_id(i, batch->descriptor_id(from));
    out.set_duration_ns(i, batch->duration_ns(from));
    out.set_begin_delta_ns(i, begin[f] - time);
    out.set_correlation_delta(i, static_cast<int32_t>(correlation[f] - id));
    time = begin[f];
    id = correlation[f];
    if constexpr (requires { batch->result(from); }) {
      if (batch->result_size() == n) out.set_result(i, batch->result(from));
    }
  }
  *batch = std::move(out);
}

void shuffle_raw_events(trace::HostChunk* chunk, std::mt19937& random) {
  const std::string raw = chunk->raw_events();
  // Room that was never used stays at the end: in the middle it would be an event begun and
  // never finished. Of one that was used the kind, its first four bytes, is not 0.
  size_t used = raw.size() / kRawEventBytes;
  while (used > 0 && raw.compare((used - 1) * kRawEventBytes, 4, std::string(4, '\0')) == 0) --used;
  std::vector<size_t> order(used);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::string out;
  for (const size_t i : order) out.append(raw, i * kRawEventBytes, kRawEventBytes);
  out.append(raw, out.size());
  chunk->set_raw_events(out);
}

}  // namespace

bool take_packet_head(const std::string& bytes, size_t& at, uint64_t& length) {
  if (at >= bytes.size() || bytes[at] != 0x0A) return false;
  length = 0;
  ++at;
  for (int shift = 0; at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    length |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) break;
  }
  return true;
}

std::vector<trace::Packet> packets_of(const std::string& bytes) {
  std::vector<trace::Packet> out;
  size_t at = 0;
  uint64_t length = 0;
  while (take_packet_head(bytes, at, length)) {
    trace::Packet packet;
    if (length > bytes.size() - at ||
        !packet.ParseFromArray(bytes.data() + at, static_cast<int>(length))) {
      throw std::runtime_error("damaged packet");
    }
    at += length;
    if (packet.has_zstd_trace()) {
      trace::Trace inner;
      if (!inner.ParseFromString(expanded(packet.zstd_trace()))) {
        throw std::runtime_error("damaged compressed packets");
      }
      for (trace::Packet& one : *inner.mutable_packet()) out.push_back(std::move(one));
    } else {
      out.push_back(std::move(packet));
    }
  }
  return out;
}

std::string bytes_of(const std::vector<trace::Packet>& packets) {
  trace::Trace all;
  for (const trace::Packet& packet : packets) *all.add_packet() = packet;
  return all.SerializeAsString();
}

void shift_time(std::vector<trace::Packet>& packets, int64_t by_ns) {
  for (trace::Packet& packet : packets) {
    switch (packet.body_case()) {
      case trace::Packet::kHeader: {
        trace::Header* header = packet.mutable_header();
        if (header->process().start_ns() != 0) {
          header->mutable_process()->set_start_ns(header->process().start_ns() + by_ns);
        }
        if (header->has_clock()) shift_pair(header->mutable_clock(), by_ns);
        break;
      }
      case trace::Packet::kStream:
        if (packet.stream().seen_ns() != 0) {
          packet.mutable_stream()->set_seen_ns(packet.stream().seen_ns() + by_ns);
        }
        break;
      case trace::Packet::kWindowBegin:
        packet.mutable_window_begin()->set_begin_ns(packet.window_begin().begin_ns() + by_ns);
        break;
      case trace::Packet::kWindowEnd:
        packet.mutable_window_end()->set_end_ns(packet.window_end().end_ns() + by_ns);
        break;
      case trace::Packet::kGpuOps:
        packet.mutable_gpu_ops()->set_base_ns(packet.gpu_ops().base_ns() + by_ns);
        break;
      case trace::Packet::kHostCalls:
        packet.mutable_host_calls()->set_base_ns(packet.host_calls().base_ns() + by_ns);
        break;
      case trace::Packet::kHostChunk:
        shift_raw_events(packet.mutable_host_chunk(), by_ns);
        break;
      case trace::Packet::kHostEvents:
        for (auto& event : *packet.mutable_host_events()->mutable_event()) {
          shift_span(&event, by_ns);
        }
        break;
      case trace::Packet::kCounters:
        for (auto& sample : *packet.mutable_counters()->mutable_sample()) {
          sample.set_time_ns(sample.time_ns() + by_ns);
        }
        break;
      case trace::Packet::kOverheads:
        for (auto& overhead : *packet.mutable_overheads()->mutable_overhead()) {
          shift_span(&overhead, by_ns);
        }
        if (packet.overheads().kind_size() != 0) {
          packet.mutable_overheads()->set_base_ns(packet.overheads().base_ns() + by_ns);
        }
        break;
      case trace::Packet::kClockPair:
        shift_pair(packet.mutable_clock_pair(), by_ns);
        break;
      case trace::Packet::kLoss:
        if (packet.loss().begin_ns() != 0) shift_span(packet.mutable_loss(), by_ns);
        break;
      case trace::Packet::kStatus:
        packet.mutable_status()->set_time_ns(packet.status().time_ns() + by_ns);
        break;
      case trace::Packet::kFooter:
        packet.mutable_footer()->set_end_ns(packet.footer().end_ns() + by_ns);
        break;
      case trace::Packet::kCollective:
        shift_span(packet.mutable_collective(), by_ns);
        break;
      default:
        break;
    }
  }
}

void renumber_streams(std::vector<trace::Packet>& packets) {
  const auto stream = [](uint32_t id) { return 5000 - id; };
  const auto context = [](uint32_t id) { return id == 0 ? 0 : 900 - id; };
  for (trace::Packet& packet : packets) {
    if (packet.has_stream()) {
      packet.mutable_stream()->set_stream_id(stream(packet.stream().stream_id()));
      packet.mutable_stream()->set_context_id(context(packet.stream().context_id()));
    } else if (packet.has_context()) {
      trace::Context* one = packet.mutable_context();
      one->set_null_stream_id(stream(one->null_stream_id()));
      one->set_context_id(context(one->context_id()));
    } else if (packet.has_descriptors()) {
      for (auto& op : *packet.mutable_descriptors()->mutable_gpu_op()) {
        op.set_stream_id(stream(op.stream_id()));
        op.set_context_id(context(op.context_id()));
      }
      for (auto& call : *packet.mutable_descriptors()->mutable_host_call()) {
        call.set_context_id(context(call.context_id()));
      }
    }
  }
}

void write_other_form(std::vector<trace::Packet>& packets) {
  const auto other = [](auto* batch) {
    if (batch->gap_change_ns_size() == 0) {
      write_changes(batch);
    } else {
      write_plain(batch);
    }
  };
  for (trace::Packet& packet : packets) {
    if (packet.has_gpu_ops()) {
      other(packet.mutable_gpu_ops());
    } else if (packet.has_host_calls()) {
      other(packet.mutable_host_calls());
    } else if (packet.has_overheads() && packet.overheads().kind_size() == 0) {
      write_overhead_columns(packet.mutable_overheads());
    }
  }
}

void shuffle(std::vector<trace::Packet>& packets, uint32_t seed) {
  std::mt19937 random(seed);
  auto last = packets.end();
  if (!packets.empty() && packets.back().has_footer()) --last;
  if (packets.begin() != last) std::shuffle(packets.begin() + 1, last, random);
  for (trace::Packet& packet : packets) {
    if (packet.has_gpu_ops()) {
      shuffle_columns(packet.mutable_gpu_ops(), random);
    } else if (packet.has_host_calls()) {
      shuffle_columns(packet.mutable_host_calls(), random);
    } else if (packet.has_host_chunk()) {
      shuffle_raw_events(packet.mutable_host_chunk(), random);
    } else if (packet.has_host_events()) {
      auto* events = packet.mutable_host_events()->mutable_event();
      std::shuffle(events->begin(), events->end(), random);
    }
  }
}

}  // namespace idlescope::test
