#include "analysis/read/dump.h"

#include <algorithm>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>

#include "analysis/read/batch_columns.h"
#include "analysis/read/byte_source.h"
#include "analysis/read/host_chunk.h"
#include "analysis/read/packet_stream.h"
#include "analysis/read/sniff.h"
#include "analysis/read/text_trace.h"
#include "analysis/read/zstd_frame.h"
#include "proto/messages.h"
#include "proto/trace.pb.h"

namespace idlescope::read {
namespace {

using trace::Packet;
using Sink = std::function<void(std::string_view)>;

std::string field_name(uint32_t number) {
  const auto* field = Packet::descriptor()->FindFieldByNumber(static_cast<int>(number));
  return field != nullptr ? field->name() : fmt::format("unknown_{}", number);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string json_of(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return "null";
  return text;
}

std::string json_of(const HostEvent& event) {
  return fmt::format(
      R"({{"kind":"{}","thread_id":{},"begin_ns":{},"end_ns":{},"iterator":{},"epoch":{},)"
      R"("batch":{},"a":{},"b":{},"c":{}}})",
      trace::HostEventKind_Name(event.kind), event.thread_id, event.begin_ns, event.end_ns,
      event.iterator, event.epoch, event.batch, event.a, event.b, event.c);
}

// The columns of a batch as records with absolute times.
template <typename Batch>
std::string json_of_columns(const Batch& batch) {
  std::string out = fmt::format(R"({{"window_id":{},"records":[)", batch.window_id());
  const int size = std::min({batch.descriptor_id_size(), batch.begin_delta_ns_size(),
                             batch.duration_ns_size(), batch.correlation_delta_size()});
  uint64_t begin = static_cast<uint64_t>(batch.base_ns());
  uint32_t correlation = 0;
  for (int i = 0; i < size; ++i) {
    begin += static_cast<uint64_t>(batch.begin_delta_ns(i));
    correlation += static_cast<uint32_t>(batch.correlation_delta(i));
    out += fmt::format(R"({}{{"begin_ns":{},"end_ns":{},"descriptor_id":{},"correlation_id":{}}})",
                       i == 0 ? "" : ",", static_cast<int64_t>(begin),
                       static_cast<int64_t>(begin + batch.duration_ns(i)), batch.descriptor_id(i),
                       correlation);
  }
  return out + "]}";
}

template <typename Batch>
std::string expand_columns(std::string_view body) {
  Batch batch;
  if (!batch.ParseFromArray(body.data(), static_cast<int>(body.size()))) return {};
  use_plain_times(batch);
  return json_of_columns(batch);
}

std::string expand_overheads(std::string_view body) {
  trace::OverheadBatch batch;
  if (!batch.ParseFromArray(body.data(), static_cast<int>(body.size()))) return {};
  use_plain_overheads(batch);
  return json_of(batch);
}

std::string expand_chunk(const PacketSlice& packet) {
  std::vector<HostEvent> events;
  const HostChunkCounts counts = decode_host_chunk(packet.body, packet.cut, events);
  std::string out = fmt::format(R"({{"committed":{},"unknown_kinds":{},"holes":{},"events":[)",
                                counts.committed, counts.unknown_kinds, counts.holes);
  for (size_t i = 0; i < events.size(); ++i) out += (i == 0 ? "" : ",") + json_of(events[i]);
  return out + "]}";
}

// Any other body: parsed as a Packet again, printed by protobuf.
std::string expand_message(const PacketSlice& packet) {
  Packet parsed;
  const auto* reflection = Packet::GetReflection();
  const auto* field = Packet::descriptor()->FindFieldByNumber(static_cast<int>(packet.field));
  if (field == nullptr || field->message_type() == nullptr) return "null";
  auto* body = reflection->MutableMessage(&parsed, field);
  if (!body->ParseFromArray(packet.body.data(), static_cast<int>(packet.body.size()))) return {};
  return json_of(*body);
}

std::string expand(const PacketSlice& packet) {
  switch (packet.field) {
    case Packet::kGpuOpsFieldNumber:
      return expand_columns<trace::GpuOpBatch>(packet.body);
    case Packet::kHostCallsFieldNumber:
      return expand_columns<trace::HostCallBatch>(packet.body);
    case Packet::kOverheadsFieldNumber:
      return expand_overheads(packet.body);
    case Packet::kHostChunkFieldNumber:
      return expand_chunk(packet);
    default:
      return expand_message(packet);
  }
}

const char* name_of(PacketStream::End end) {
  switch (end) {
    case PacketStream::End::kComplete:
      return "complete";
    case PacketStream::End::kReserved:
      return "reserved";
    case PacketStream::End::kTruncated:
      return "truncated";
    default:
      return "corrupt";
  }
}

void dump_stream(std::string_view bytes, bool nested, const Sink& sink) {
  PacketStream packets(bytes);
  while (const std::optional<PacketSlice> packet = packets.next()) {
    const std::string at = nested ? fmt::format(R"("frame_offset":{})", packet->offset)
                                  : fmt::format(R"("offset":{})", packet->offset);
    if (packet->field == Packet::kZstdTraceFieldNumber && !nested) {
      const auto content = expand_zstd(packet->body);
      sink(fmt::format(R"({{{},"zstd_trace":{{"bytes":{}{}}}}})", at, packet->body.size(),
                       content ? fmt::format(R"(,"expanded_bytes":{})", content->size())
                               : R"(,"error":)" + quoted(content.error())));
      if (content) dump_stream(*content, true, sink);
      continue;
    }
    const std::string body = expand(*packet);
    sink(body.empty() ? fmt::format(R"({{{},"{}":null,"error":"cannot be decoded"}})", at,
                                    field_name(packet->field))
                      : fmt::format(R"({{{},"{}":{}}})", at, field_name(packet->field), body));
  }
  if (!nested || packets.end() != PacketStream::End::kComplete) {
    sink(fmt::format(R"({{"end":"{}","offset":{},"bytes":{}}})", name_of(packets.end()),
                     packets.end_offset(), bytes.size()));
  }
}

}  // namespace

Expected<void> dump_packets(const std::string& path, const Sink& sink) {
  google::protobuf::SetLogHandler(nullptr);  // damage is counted, not printed
  auto source = ByteSource::open(path);
  if (!source) return tl::unexpected(source.error());
  const auto bytes = source->bytes();
  if (!bytes) return tl::unexpected(bytes.error());
  switch (sniff(path, source->head()).format) {
    case Format::kTrace:
      dump_stream(*bytes, false, sink);
      return {};
    case Format::kTextTrace: {
      const auto serialized = serialize_text_trace(*bytes, path);
      if (!serialized) return tl::unexpected(serialized.error());
      dump_stream(*serialized, false, sink);
      return {};
    }
    default:
      return tl::unexpected(Fault{messages::kNotATrace,
                                  {{"path", path},
                                   {"offset", "0"},
                                   {"expected", "an .istrace file"},
                                   {"found", "something else"}}});
  }
}

}  // namespace idlescope::read
