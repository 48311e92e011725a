#include "analysis/read/sniff.h"

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
    {"\x89HDF\r\n\x1A\n"sv, "an HDF5 file",
     "Expected an .istrace file, a PyTorch profiler JSON or an nsys SQLite export."},
    {"NVDA"sv, "an Nsight Compute report",
     "It holds kernels one by one and no timeline. Record the job: idlescope record -- CMD"},
    {"PAR1"sv, "a Parquet file",
     "An nsys Parquet export is not read; use: nsys export --type sqlite FILE"},
    {"<!DOCTYPE"sv, "an HTML page", "Name the recording it was made from."},
    {"<html"sv, "an HTML page", "Name the recording it was made from."},
};

bool starts_with(std::string_view bytes, std::string_view prefix) {
  return bytes.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
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
  if (starts_with(bytes, "\xEF\xBB\xBF"sv)) bytes.remove_prefix(3);
  const size_t text = bytes.find_first_not_of(" \t\r\n");
  if (text != bytes.npos && (bytes[text] == '{' || bytes[text] == '[')) {
    return {Format::kJson, {}, {}};
  }
  return {};
}

}  // namespace idlescope::read
