#include "analysis/read/read.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "analysis/read/byte_source.h"
#include "analysis/read/kineto_json.h"
#include "analysis/read/nsys_sqlite.h"
#include "analysis/read/recording.h"
#include "analysis/read/sniff.h"
#include "analysis/read/text_stream.h"
#include "analysis/read/text_trace.h"
#include "analysis/read/trace_reader.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

namespace fs = std::filesystem;

struct Input {
  std::string path;
  bool named = true;  // by the user; else found in a directory
};

bool has_suffix(const std::string& name, std::string_view suffix) {
  return name.size() > suffix.size() &&
         name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
}

bool is_import_name(const std::string& name) {
  // run.json is the launcher's own note in every recording directory.
  if (name == "run.json") return false;
  for (const std::string_view suffix :
       {".json", ".json.gz", ".sqlite", ".sqlite.gz", ".sqlite3", ".db"}) {
    if (has_suffix(name, suffix)) return true;
  }
  return false;
}

Expected<std::vector<Input>> list_directory(const std::string& path) {
  std::vector<Input> traces;
  std::vector<Input> imports;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    if (has_suffix(name, ".istrace")) traces.push_back({it->path().string(), false});
    if (is_import_name(name)) imports.push_back({it->path().string(), false});
  }
  if (error) {
    return tl::unexpected(
        Fault{messages::kFileMissing, {{"path", path}, {"reason", error.message()}}});
  }
  std::vector<Input>& found = traces.empty() ? imports : traces;
  if (found.empty()) return tl::unexpected(Fault{messages::kDirectoryEmpty, {{"path", path}}});
  std::sort(found.begin(), found.end(),
            [](const Input& a, const Input& b) { return a.path < b.path; });
  return std::move(found);
}

Expected<std::vector<Input>> list_inputs(const std::vector<std::string>& paths) {
  std::vector<Input> inputs;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path != "-" && fs::is_directory(path, ignored)) {
      auto inside = list_directory(path);
      if (!inside) return tl::unexpected(std::move(inside.error()));
      inputs.insert(inputs.end(), inside->begin(), inside->end());
    } else {
      inputs.push_back({path, true});
    }
  }
  return inputs;
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 8)) {
    const unsigned char value = static_cast<unsigned char>(byte);
    text += value >= 0x20 && value < 0x7F ? std::string(1, byte) : fmt::format("\\x{:02x}", value);
  }
  return "\"" + text + "\"";
}

tl::unexpected<Fault> foreign_fault(const Sniffed& sniffed, const std::string& path) {
  std::string todo(sniffed.todo);
  if (const size_t at = todo.find("FILE"); at != todo.npos) todo.replace(at, 4, path);
  return tl::unexpected(
      Fault{messages::kForeignFile,
            {{"path", path}, {"what", std::string(sniffed.what)}, {"todo", std::move(todo)}}});
}

tl::unexpected<Fault> unknown_fault(std::string_view bytes, const std::string& path) {
  return tl::unexpected(Fault{messages::kNotATrace,
                              {{"path", path},
                               {"offset", "0"},
                               {"expected", "a trace, JSON or an SQLite file"},
                               {"found", printable(bytes)}}});
}

// sqlite needs the whole file; TextStream bounds what a small one may become.
Expected<std::string> inflate_all(ByteSource& source, const std::string& path) {
  TextStream text(source.pieces(), source.size());
  std::string out;
  constexpr size_t kPiece = size_t{4} << 20;
  while (true) {
    const size_t used = out.size();
    out.resize(used + kPiece);
    const size_t got = text.read(out.data() + used, kPiece);
    out.resize(used + got);
    if (got == 0) break;
  }
  if (text.end() == TextStream::End::kBomb) {
    return tl::unexpected(Fault{messages::kExpandsTooMuch,
                                {{"path", path}, {"ratio", std::to_string(kMaxInflateRatio)}}});
  }
  return out;
}

// Only the beginning is needed to know what is inside.
Expected<void> read_gzip(ByteSource& source, const std::string& path, Recording& recording) {
  std::string head(64 << 10, '\0');
  TextStream text(source.pieces(), source.size());
  head.resize(text.read(head.data(), head.size()));
  if (head.empty()) return unknown_fault(source.head(), path);
  const Sniffed inside = sniff(path, head);
  switch (inside.format) {
    case Format::kJson:
      return import_kineto_pieces(source.pieces(), source.size(), path, recording);
    case Format::kSqlite: {
      auto inflated = inflate_all(source, path);
      if (!inflated) return tl::unexpected(std::move(inflated.error()));
      return import_nsys(*inflated, path, recording);
    }
    case Format::kForeign:
      return foreign_fault(inside, path);
    case Format::kGzip:
      return foreign_fault(
          {Format::kForeign, "a gzip file inside a gzip file", "Unpack it once: gunzip FILE"},
          path);
    default:
      return unknown_fault(head, path);
  }
}

Expected<void> read_one(const std::string& path, Recording& recording) {
  auto source = ByteSource::open(path);
  if (!source) return tl::unexpected(std::move(source.error()));
  recording.input_bytes += source->size();
  const Sniffed sniffed = sniff(path, source->head());
  switch (sniffed.format) {
    case Format::kJson:  // may be larger than what others should have in memory
      return import_kineto_pieces(source->pieces(), source->size(), path, recording);
    case Format::kGzip:
      return read_gzip(*source, path, recording);
    case Format::kForeign:
      return foreign_fault(sniffed, path);
    case Format::kUnknown:
      return unknown_fault(source->head(), path);
    default:
      break;
  }
  const auto bytes = source->bytes();
  if (!bytes) return tl::unexpected(bytes.error());
  if (sniffed.format == Format::kTrace) return read_trace(*bytes, path, recording);
  if (sniffed.format == Format::kSqlite) return import_nsys(*bytes, path, recording);
  auto serialized = serialize_text_trace(*bytes, path);
  if (!serialized) return tl::unexpected(std::move(serialized.error()));
  return read_trace(*serialized, path, recording);
}

std::string name_of(Origin origin) {
  switch (origin) {
    case Origin::kKineto:
      return "a PyTorch profile";
    case Origin::kNsys:
      return "an Nsight Systems export";
    default:
      return "an idlescope recording";
  }
}

// One line for all: a killed job leaves many such files.
void say_unfinished(Recording& recording) {
  uint64_t count = 0;
  std::string first;
  for (const Process& process : recording.processes) {
    if (!process.unfinished) continue;
    if (count++ == 0) first = process.path;
  }
  if (count == 0) return;
  recording.anomalies.push_back(
      {messages::kTraceUnfinished, {{"path", first}, {"count", std::to_string(count)}}, count});
}

}  // namespace

Expected<Recording> read_paths(const std::vector<std::string>& paths) {
  auto inputs = list_inputs(paths);
  if (!inputs) return tl::unexpected(std::move(inputs.error()));
  Recording recording;
  recording.paths = paths;
  std::optional<Fault> first_fault;
  std::optional<std::pair<Origin, std::string>> first_read;
  for (const Input& input : *inputs) {
    auto done = read_one(input.path, recording);
    if (done) {
      if (!first_read) first_read.emplace(recording.origin, input.path);
      if (first_read->first != recording.origin) {
        return tl::unexpected(Fault{messages::kMixedFormats,
                                    {{"path", first_read->second},
                                     {"what", name_of(first_read->first)},
                                     {"other_path", input.path},
                                     {"other_what", name_of(recording.origin)}}});
      }
      continue;
    }
    // One bad file among many must not hide the others, unless the user named it.
    if (input.named || done.error().message.id == messages::kNewerFormat.id) {
      return tl::unexpected(std::move(done.error()));
    }
    recording.anomalies.push_back(
        {messages::kFileSkipped, {{"path", input.path}, {"reason", done.error().text()}}, 1, true});
    if (!first_fault) first_fault = std::move(done.error());
  }
  if (recording.processes.empty() && first_fault) return tl::unexpected(std::move(*first_fault));
  say_unfinished(recording);
  return recording;
}

}  // namespace idlescope::read
