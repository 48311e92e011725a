// `idlescope pack [DIR] -o FILE.tar.zst [--redact]`: one file to send to a colleague.
#include <archive.h>
#include <archive_entry.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "analysis/export/redact.h"
#include "proto/messages.h"
#include "tools/compact.h"
#include "tools/exit_codes.h"
#include "tools/input_paths.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/units.h"

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

struct PackOptions {
  std::string directory;
  std::string output;
  bool redact = false;
  bool force = false;
};

bool read_file(const std::string& path, std::string* content) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  *content = std::move(stream).str();
  return file.good() || file.eof();
}

class Archive {
 public:
  bool open(const std::string& path) {
    path_ = path;
    archive_ = archive_write_new();
    archive_write_add_filter_zstd(archive_);
    archive_write_set_format_pax_restricted(archive_);
    return check(archive_write_open_filename(archive_, path.c_str()));
  }
  bool add(const std::string& name, const std::string& content) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    const bool good = check(archive_write_header(archive_, entry)) &&
                      archive_write_data(archive_, content.data(), content.size()) ==
                          static_cast<la_ssize_t>(content.size());
    archive_entry_free(entry);
    return good || fail();
  }
  bool close() { return check(archive_write_close(archive_)); }
  ~Archive() { archive_write_free(archive_); }

 private:
  bool check(int result) { return result == ARCHIVE_OK || fail(); }
  bool fail() {
    if (!failed_) {
      const char* reason = archive_error_string(archive_);
      say_error(messages::kCannotWrite, {{"path", path_}, {"reason", reason ? reason : "unknown"}});
    }
    failed_ = true;
    return false;
  }
  archive* archive_ = nullptr;
  std::string path_;
  bool failed_ = false;
};

// The host is part of a trace file's name, and the name says more than it must.
std::string redacted_name(const std::string& name, exporting::Redactor* redactor) {
  TraceFileName parts;
  if (!parse_trace_file_name(name, &parts)) return redactor->text(name);
  return redactor->host(parts.host) + "." + std::to_string(parts.pid) + "." +
         std::to_string(parts.start_ticks) + "." + std::to_string(parts.image) + ".istrace";
}

int run_pack(PackOptions options) {
  if (options.directory.empty()) {
    const std::optional<std::string> newest = newest_recording(".");
    if (!newest) {
      say_error(messages::kNoRecordingHere);
      return kBadInput;
    }
    options.directory = *newest;
  }
  std::error_code error;
  std::vector<fs::path> traces;
  if (fs::is_regular_file(options.directory, error)) {
    traces.emplace_back(options.directory);
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(options.directory, error)) {
      if (entry.path().extension() == ".istrace") traces.push_back(entry.path());
    }
  }
  if (error) {
    say_error(messages::kFileMissing, {{"path", options.directory}, {"reason", error.message()}});
    return kBadInput;
  }
  if (traces.empty()) {
    say_error(messages::kDirectoryEmpty, {{"path", options.directory}});
    return kBadInput;
  }
  std::sort(traces.begin(), traces.end());
  fs::path whole = fs::path(options.directory);
  if (!whole.has_filename()) whole = whole.parent_path();
  std::string folder = whole.filename().string();
  if (folder.empty() || folder == "." || folder == "..") folder = "recording";
  if (options.redact) folder = "recording";
  if (options.output.empty()) options.output = folder + ".tar.zst";
  if (!options.force && fs::exists(options.output)) {
    say_error(messages::kOutputExists, {{"path", options.output}});
    return kBadInput;
  }
  exporting::Redactor redactor;
  Archive archive;
  if (!archive.open(options.output)) return kBadInput;
  for (const fs::path& trace : traces) {
    std::string content;
    if (!read_file(trace.string(), &content)) {
      say_error(messages::kFileMissing,
                {{"path", trace.string()}, {"reason", "it cannot be read"}});
      return kBadInput;
    }
    std::string name = trace.filename().string();
    if (options.redact) {
      // The header names the host; it is read first so that the file's name follows it.
      name = redacted_name(name, &redactor);
      read::Expected<std::string> redacted =
          exporting::redact_trace(content, trace.string(), &redactor);
      if (!redacted) {
        say_error(redacted.error().message, redacted.error().values);
        return kBadInput;
      }
      content = std::move(*redacted);
    }
    if (!archive.add(folder + "/" + name, content)) return kBadInput;
  }
  // run.json is nothing but names and paths: a redacted pack goes without it.
  const fs::path run = fs::path(options.directory) / "run.json";
  std::string content;
  if (!options.redact && fs::is_regular_file(run, error) && read_file(run.string(), &content)) {
    if (!archive.add(folder + "/run.json", content)) return kBadInput;
  }
  if (!archive.close()) return kBadInput;
  say(options.redact ? messages::kPackedRedacted : messages::kPacked,
      {{"path", options.output},
       {"size", format_size(fs::file_size(options.output, error))},
       {"folder", folder}});
  return kOk;
}

}  // namespace

void add_pack(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* command = app.add_subcommand("pack",
                                         "Make one file of a recording, to send to somebody.\n"
                                         "\n"
                                         "  idlescope pack run7\n"
                                         "  idlescope pack run7 --redact -o for-the-issue.tar.zst");
  command->add_option("DIR", options->directory, "A recording; none: the newest here");
  command->add_option("-o,--output", options->output, "The file (default DIR.tar.zst)");
  command->add_flag("--redact", options->redact,
                    "Take out directories, hosts, command lines, URLs");
  command->add_flag("-f,--force", options->force, "Overwrite the file");
  command->callback(
      [options, &selected] { selected.run = [options] { return run_pack(*options); }; });
}

}  // namespace idlescope::tools
