#include <zstd.h>

#include "analysis/export/redact.h"
#include "analysis/read/packet_stream.h"
#include "analysis/read/zstd_frame.h"
#include "proto/messages.h"
#include "proto/trace.pb.h"

namespace idlescope::exporting {
namespace {

void append_varint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

// Field `number`, length-delimited.
void append_field(uint32_t number, std::string_view content, std::string* out) {
  append_varint(uint64_t{number} << 3 | 2, out);
  append_varint(content.size(), out);
  *out += content;
}

std::string compressed(const std::string& content) {
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  const size_t size = ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 3);
  if (ZSTD_isError(size)) return "";
  frame.resize(size);
  return frame;
}

// Packets of `bytes`, redacted, as the content of a Trace; counts them.
std::string redacted_packets(std::string_view bytes, Redactor* redactor, bool nested,
                             uint64_t* packets) {
  std::string out;
  read::PacketStream stream(bytes);
  while (const auto slice = stream.next()) {
    if (slice->cut || slice->field == 0) continue;
    std::string wrapped;
    append_field(slice->field, slice->body, &wrapped);
    trace::Packet packet;
    if (!packet.ParseFromString(wrapped)) continue;
    ++*packets;
    packet.DiscardUnknownFields();
    if (packet.body_case() == trace::Packet::BODY_NOT_SET) continue;
    if (packet.has_zstd_trace()) {
      if (nested) continue;  // the format does not allow it
      const auto content = read::expand_zstd(packet.zstd_trace());
      if (!content) continue;
      packet.set_zstd_trace(compressed(redacted_packets(*content, redactor, true, packets)));
    } else {
      redactor->packet(&packet);
    }
    append_field(1, packet.SerializeAsString(), &out);
  }
  return out;
}

}  // namespace

void Redactor::packet(trace::Packet* packet) {
  switch (packet->body_case()) {
    case trace::Packet::kHeader: {
      trace::Header* header = packet->mutable_header();
      header->clear_library_path();
      if (!header->boot_id().empty()) header->set_boot_id(placeholder("boot", header->boot_id()));
      trace::Process* process = header->mutable_process();
      process->set_host(host(process->host()));
      process->set_executable(text(process->executable()));
      process->clear_command_line();
      process->clear_working_directory();
      if (!process->job_id().empty()) process->set_job_id(placeholder("job", process->job_id()));
      break;
    }
    case trace::Packet::kDevice:
      packet->mutable_device()->clear_uuid();
      packet->mutable_device()->clear_pci_bus_id();
      break;
    case trace::Packet::kNames:
      for (trace::NameTable::Entry& entry : *packet->mutable_names()->mutable_entry()) {
        entry.set_text(text(entry.text()));
      }
      break;
    case trace::Packet::kLoss:
      packet->mutable_loss()->set_detail(text(packet->loss().detail()));
      break;
    case trace::Packet::kStatus:
      packet->mutable_status()->set_detail(text(packet->status().detail()));
      break;
    case trace::Packet::kThreadName:
      packet->mutable_thread_name()->set_name(text(packet->thread_name().name()));
      break;
    default:
      break;  // numbers only
  }
}

read::Expected<std::string> redact_trace(std::string_view file, const std::string& path,
                                         Redactor* redactor) {
  uint64_t packets = 0;
  std::string out = redacted_packets(file, redactor, false, &packets);
  if (packets == 0) {
    return tl::unexpected(read::Fault{
        messages::kNotATrace,
        {{"path", path}, {"offset", "0"}, {"expected", "a packet of a trace"}, {"found", "none"}}});
  }
  return out;
}

}  // namespace idlescope::exporting
