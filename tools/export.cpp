// `idlescope export [PATH…] --to perfetto|chrome|csv`: a recording for other viewers.
#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "analysis/diagnose/diagnose.h"
#include "analysis/export/export.h"
#include "analysis/read/read.h"
#include "analysis/read/recording.h"
#include "analysis/report/build.h"
#include "proto/messages.h"
#include "tools/exit_codes.h"
#include "tools/input_paths.h"
#include "tools/say.h"
#include "tools/standard_output.h"
#include "tools/subcommand.h"

namespace idlescope::tools {
namespace {

struct ExportOptions {
  std::vector<std::string> paths;
  std::string to = "perfetto";
  std::string output;
  std::string table = "all";
  bool force = false;
};

// Opens a file that must not exist unless forced; "-" is stdout.
class Output {
 public:
  bool open(const std::string& path, bool force) {
    path_ = path;
    if (path == "-") return true;
    if (!force && std::filesystem::exists(path)) {
      say_error(messages::kOutputExists, {{"path", path}});
      return false;
    }
    file_.open(path, std::ios::binary | std::ios::trunc);
    return check(file_.good());
  }
  std::ostream& stream() { return path_ == "-" ? std::cout : file_; }
  bool close() {
    if (path_ == "-") return finish_printing();
    file_.close();
    return check(!file_.fail());
  }

 private:
  bool check(bool good) {
    if (!good)
      say_error(messages::kCannotWrite,
                {{"path", path_}, {"reason", "the file system refused it"}});
    return good;
  }
  std::string path_;
  std::ofstream file_;
};

int export_csv(const ExportOptions& options, const diagnose::Analysis& analysis) {
  const report::Report report = report::build(analysis.diagnosis, analysis.model.recording);
  const auto one = [&](const std::string& table, const std::string& path) {
    Output output;
    if (!output.open(path, options.force)) return false;
    exporting::write_csv(table, analysis, report, output.stream());
    return output.close();
  };
  if (options.table != "all") {
    return one(options.table, options.output.empty() ? "-" : options.output) ? kOk : kBadInput;
  }
  const std::string directory = options.output.empty() ? "idlescope-csv" : options.output;
  std::error_code error;
  if (!options.force && std::filesystem::exists(directory)) {
    say_error(messages::kOutputExists, {{"path", directory}});
    return kBadInput;
  }
  std::filesystem::create_directories(directory, error);
  if (error) {
    say_error(messages::kCannotWrite, {{"path", directory}, {"reason", error.message()}});
    return kBadInput;
  }
  for (const std::string& table : exporting::csv_tables()) {
    if (!one(table, directory + "/" + table + ".csv")) return kBadInput;
  }
  say(messages::kExportWritten, {{"path", directory + "/"}, {"viewer", "one table a file"}});
  return kOk;
}

int run_export(ExportOptions options) {
  end_quietly_on_closed_pipe();
  if (options.paths.empty()) {
    const std::optional<std::string> newest = newest_recording(".");
    if (!newest) {
      say_error(messages::kNoRecordingHere);
      return kBadInput;
    }
    options.paths.push_back(*newest);
  }
  read::Expected<read::Recording> recording = read::read_paths(options.paths);
  if (!recording) {
    say_error(recording.error().message, recording.error().values);
    return kBadInput;
  }
  const diagnose::Analysis analysis = diagnose::analyze(std::move(*recording));
  if (options.to == "csv") return export_csv(options, analysis);
  const bool perfetto = options.to == "perfetto";
  if (options.output.empty()) options.output = perfetto ? "idlescope.pftrace" : "idlescope.json";
  Output output;
  if (!output.open(options.output, options.force)) return kBadInput;
  if (perfetto) {
    exporting::write_perfetto(analysis, output.stream());
  } else {
    exporting::write_chrome_json(analysis, output.stream());
  }
  if (!output.close()) return kBadInput;
  if (options.output != "-") {
    say(messages::kExportWritten,
        {{"path", options.output}, {"viewer", "open it at ui.perfetto.dev"}});
  }
  return kOk;
}

}  // namespace

void add_export(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export",
                         "Write a recording for other viewers.\n"
                         "\n"
                         "  idlescope export run7 -o run7.pftrace          for ui.perfetto.dev\n"
                         "  idlescope export run7 --to csv --table steps   one table to stdout");
  command->add_option("PATH", options->paths,
                      "Recording directories or trace files; none: the newest here");
  command->add_option("--to", options->to, "perfetto, chrome or csv")
      ->check(CLI::IsMember({"perfetto", "chrome", "csv"}));
  std::vector<std::string> tables = exporting::csv_tables();
  tables.push_back("all");
  command
      ->add_option("--table", options->table, "Which CSV table; all: every table into a directory")
      ->check(CLI::IsMember(tables));
  command->add_option("-o,--output", options->output,
                      "File (directory for all CSV tables); - is stdout");
  command->add_flag("-f,--force", options->force, "Overwrite it");
  command->callback(
      [options, &selected] { selected.run = [options] { return run_export(*options); }; });
}

}  // namespace idlescope::tools
