#include "analysis/read/sniff.h"

#include "analysis/read/packet_stream.h"
#include "analysis/read/trace_reader.h"

namespace idlescope::read {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  std::string_view what;
  std::string_view todo;
};

constexpr Magic kForeignMagics[] = {
    {"NVIDIA Tegra Profiler Report"sv, "an Nsight Systems report, whose format is closed",
     "Convert it first: nsys export --type sqlite FILE"},
    {"\x28\xB5\x2F\xFD"sv, "a zstd archive", "Unpack it first: zstd -d FILE"},
    {"\xFD"
     "7zXZ\0"sv,
     "an xz archive", "Unpack it first: xz -d FILE"},
    {"BZh"sv, "a bzip2 archive", "Unpack it first: bzip2 -d FILE"},
    {"PK\x03\x04"sv, "a zip archive (PyTorch checkpoints are, too)",
     "If it holds a trace, unpack it first: unzip FILE"},
    {"\x7F"
     "ELF"sv,
     "a program", "Record it: idlescope record -- FILE"},
    {"\x89HDF\r\n\x1A\n"sv, "an HDF5 file", "Name the trace, if its tool wrote one beside it."},
    {"NVDA"sv, "an Nsight Compute report",
     "It holds kernels one by one and no timeline. Record the job: idlescope record -- CMD"},
    {"PAR1"sv, "a Parquet file",
     "An nsys Parquet export is not read; use: nsys export --type sqlite FILE"},
    {"\xFF\xFE"sv, "text in UTF-16 (PowerShell's > writes it)",
     "Turn it into UTF-8: iconv -f UTF-16 -t UTF-8 FILE > utf8.json"},
    {"\xFE\xFF"sv, "text in UTF-16",
     "Turn it into UTF-8: iconv -f UTF-16 -t UTF-8 FILE > utf8.json"},
    {"LZIP"sv, "an lzip archive", "Unpack it first: lzip -d FILE"},
    {"\x04\x22\x4D\x18"sv, "an lz4 archive", "Unpack it first: lz4 -d FILE"},
    {"7z\xBC\xAF\x27\x1C"sv, "a 7z archive", "If it holds a trace, unpack it first: 7z x FILE"},
};

constexpr std::string_view kExpected =
    "Expected an .istrace file, a PyTorch profiler JSON or an nsys SQLite export."sv;

bool starts_with(std::string_view bytes, std::string_view prefix) {
  return bytes.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool equals_ignoring_case(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const char c = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] - 'A' + 'a') : a[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// Trace { TracePacket packet = 1 { … } }, told by the fields of its first packets: those of
// Perfetto are a timestamp (8), a sequence id (10), a track descriptor (60) and the like, never
// a Header (1).
bool looks_like_perfetto(std::string_view bytes) {
  uint64_t tag = 0;
  uint64_t packet_size = 0;
  if (!take_varint(bytes, tag) || tag != 0x0A || !take_varint(bytes, packet_size)) return false;
  if (packet_size < 2 || packet_size > bytes.size()) return false;
  std::string_view packet = bytes.substr(0, static_cast<size_t>(packet_size));
  std::string_view next = bytes.substr(packet.size());
  if (!next.empty() && next.front() != '\x0A') return false;
  while (!packet.empty()) {
    uint64_t value = 0;
    if (!take_varint(packet, tag)) return false;
    const uint64_t field = tag >> 3;
    // Every packet says on which sequence or clock it is, or is one of the large messages.
    const bool known = field == 8 || field == 10 || field == 11 || field == 12 || field == 13 ||
                       (field >= 33 && field <= 130);
    if (!known) return false;
    if ((tag & 7) == 0) {
      if (!take_varint(packet, value)) return false;
    } else if ((tag & 7) == 2) {
      if (!take_varint(packet, value) || value > packet.size()) return false;
      packet.remove_prefix(static_cast<size_t>(value));
    } else {
      return false;
    }
  }
  return true;
}

// Printable, as far as it was looked at.
bool looks_like_text(std::string_view bytes) {
  for (const char byte : bytes.substr(0, 512)) {
    const unsigned char c = static_cast<unsigned char>(byte);
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return false;
    // 0x7F and bytes that UTF-8 never has.
    if (c == 0x7F || c == 0xC0 || c == 0xC1 || c > 0xF4) return false;
  }
  return true;
}

Sniffed sniff_text(std::string_view path, std::string_view text) {
  for (const std::string_view page : {"<!doctype"sv, "<html"sv}) {
    if (equals_ignoring_case(text.substr(0, page.size()), page)) {
      return {Format::kForeign, "an HTML page", "Name the recording it was made from."};
    }
  }
  if (ends_with(path, ".py") || starts_with(text, "#!")) {
    return {Format::kForeign, "a script", "Record what it does: idlescope record -- python FILE"};
  }
  if (text.find(',') < text.find('\n')) {
    return {Format::kForeign, "a text table (CSV, perhaps of nsys stats)",
            "A summary has no times of single events; name the recording it was made from."};
  }
  return {Format::kForeign, "a text file", kExpected};
}

// XSpace { XPlane planes = 1 { int64 id = 1; string name = 2; … } }
bool looks_like_xplane(std::string_view bytes) {
  if (bytes.empty() || bytes.front() != '\x0A') return false;
  const size_t head = bytes.substr(0, 64).find("/host:");
  return head != bytes.npos || bytes.substr(0, 64).find("/device:") != bytes.npos;
}

}  // namespace

Sniffed sniff(std::string_view path, std::string_view bytes) {
  for (const Magic& magic : kForeignMagics) {
    if (starts_with(bytes, magic.bytes)) return {Format::kForeign, magic.what, magic.todo};
  }
  if (starts_with(bytes, "\x1F\x8B"sv)) return {Format::kGzip, {}, {}};
  if (starts_with(bytes, "SQLite format 3\0"sv)) return {Format::kSqlite, {}, {}};
  if (looks_like_xplane(bytes)) {
    return {Format::kForeign, "an XPlane file of TensorFlow, JAX or XLA",
            "Those are not read; for a PyTorch job: idlescope record -- python train.py"};
  }
  if (looks_like_trace(bytes)) return {Format::kTrace, {}, {}};
  if (ends_with(path, ".txtpb")) return {Format::kTextTrace, {}, {}};
  if (bytes.size() > 262 && bytes.substr(257, 5) == "ustar"sv) {
    return {Format::kForeign, "a tar archive", "Unpack it first: tar xf FILE"};
  }
  if (looks_like_perfetto(bytes)) {
    return {Format::kForeign, "a Perfetto trace, which idlescope writes but does not read",
            "Name the recording it was made from, or open it at ui.perfetto.dev."};
  }
  for (const std::string_view name : {".nsys-rep"sv, ".qdrep"sv, ".qdstrm"sv}) {
    if (!ends_with(path, name)) continue;
    return {Format::kForeign, "no Nsight Systems report, though its name says so, or a damaged one",
            "If nsys opens it: nsys export --type sqlite FILE"};
  }
  if (starts_with(bytes, "\xEF\xBB\xBF"sv)) bytes.remove_prefix(3);
  const size_t text = bytes.find_first_not_of(" \t\r\n");
  if (text == bytes.npos) return {};
  if (bytes[text] == '{' || bytes[text] == '[') return {Format::kJson, {}, {}};
  if (looks_like_text(bytes)) return sniff_text(path, bytes.substr(text));
  if (bytes.substr(0, 512).find_first_not_of('\0') == bytes.npos) {
    return {Format::kForeign, "a file of zero bytes: its writer ended before it wrote anything",
            "Record again."};
  }
  return {};
}

}  // namespace idlescope::read
