#include "analysis/export/compressed_packets.h"

#include <zlib.h>

#include <ostream>

namespace idlescope::exporting {
namespace {

constexpr size_t kBundleBytes = size_t{512} << 10;
// Level 1 of 9: names and shapes repeat so much that more effort saves a tenth of the size for
// three times the time.
constexpr int kLevel = 1;

void append_length(size_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

}  // namespace

void CompressedPackets::add(std::string_view packet) {
  bundle_ += '\x0A';  // Trace.packet, field 1
  append_length(packet.size(), bundle_);
  bundle_ += packet;
  if (bundle_.size() >= kBundleBytes) flush();
}

void CompressedPackets::flush() {
  if (bundle_.empty()) return;
  std::string content(compressBound(bundle_.size()), '\0');
  uLongf size = content.size();
  const bool good =
      compress2(reinterpret_cast<Bytef*>(content.data()), &size,
                reinterpret_cast<const Bytef*>(bundle_.data()), bundle_.size(), kLevel) == Z_OK;
  if (good) {
    // Trace { packet { compressed_packets (field 50, tag 0x92 0x03) } }
    std::string field = "\x92\x03";
    append_length(size, field);
    std::string head = "\x0A";
    append_length(field.size() + size, head);
    out_ << head << field;
    out_.write(content.data(), static_cast<std::streamsize>(size));
  } else {  // no memory for zlib: larger, but the same trace
    out_ << bundle_;
  }
  bundle_.clear();
}

}  // namespace idlescope::exporting
