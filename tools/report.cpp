// `idlescope report [PATH…]`: what a recording says, as text, JSON, Markdown or HTML.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <map>
#include <memory>

#include "analysis/report/fail_if.h"
#include "analysis/report/html.h"
#include "analysis/report/json.h"
#include "analysis/report/markdown.h"
#include "analysis/report/text.h"
#include "proto/messages.h"
#include "proto/report.pb.h"
#include "tools/analyse.h"
#include "tools/exit_codes.h"
#include "tools/input_paths.h"
#include "tools/job_identity.h"
#include "tools/run_file.h"
#include "tools/say.h"
#include "tools/standard_output.h"
#include "tools/subcommand.h"
#include "tools/units.h"

namespace idlescope::tools {
namespace {

struct ReportOptions {
  std::vector<std::string> paths;
  std::string format = "text";
  bool json = false;
  std::string output = "-";
  bool force = false;
  report::ColourChoice colour = report::ColourChoice::kAuto;
  std::string lang;
  bool verbose = false;
  std::vector<std::string> fail_if;
  bool after_record = false;  // by record itself, when the job has ended
};

// "1 GPU process, 2 loader workers, 1755 steps (163 kernel by kernel), 9.6 MB; …"
void say_summary(const report::Report& report) {
  uint64_t with_gpu = 0;
  uint64_t others = 0;
  uint64_t workers = 0;
  for (const report::ProcessInfo& process : report.source().processes()) {
    if (process.role() == "loader worker") {
      ++workers;
    } else if (process.gpu_ops() > 0) {
      ++with_gpu;
    } else {
      ++others;
    }
  }
  const auto counted = [](uint64_t number, const messages::Message& one,
                          const messages::Message& many) {
    return words(number == 1 ? one : many,
                 {{"count", std::to_string(number)}, {"steps", std::to_string(number)}});
  };
  const messages::Values values = {
      {"processes", with_gpu > 0
                        ? counted(with_gpu, messages::kOneGpuProcess, messages::kManyGpuProcesses)
                        : counted(others, messages::kOneProcess, messages::kManyProcesses)},
      {"workers", counted(workers, messages::kOneLoaderWorker, messages::kManyLoaderWorkers)},
      {"counted", counted(report.step().run_steps(), messages::kOneStep, messages::kManySteps)},
      {"detailed", std::to_string(report.step().steady_steps())},
      {"size", format_size(report.cost().trace_bytes())},
      {"cost", format_share(report.cost().share_of_run())}};
  say(report.cost().share_of_run() >= 0 ? messages::kJobSummary : messages::kJobSummaryPlain,
      values);
}

// Gates after the report: their lines on stderr, kGateFailed if one is met.
int run_gates(const std::vector<report::Condition>& gates, const report::Report& report) {
  int code = kOk;
  for (const report::Condition& gate : gates) {
    const read::Expected<report::GateResult> result = report::check(gate, report);
    if (!result) {
      say_error(result.error().message, result.error().values);
      return kBadInput;
    }
    say(messages::kGateResult, {{"result", result->text}});
    if (result->met) code = kGateFailed;
  }
  return code;
}

// A directory above recordings is a likely slip.
std::string hint(const messages::Message& message, const std::vector<std::string>& paths) {
  if (message.id != messages::kDirectoryEmpty.id || paths.size() != 1) return "";
  const std::optional<std::string> newest = newest_recording(paths[0]);
  if (!newest) return "";
  const std::string path = paths[0] + (paths[0].back() == '/' ? "" : "/") + *newest;
  return words(messages::kDirectoryHasRecordings, {{"path", path}});
}

int run_report(ReportOptions options) {
  end_quietly_on_closed_pipe();
  std::vector<report::Condition> gates;
  for (const std::string& text : options.fail_if) {
    read::Expected<report::Condition> gate = report::parse_condition(text);
    if (!gate) throw UsageError(gate.error().text());
    gates.push_back(std::move(*gate));
  }
  if (options.paths.empty()) {
    const std::optional<std::string> newest = newest_recording(".");
    if (!newest) {
      say_error(messages::kNoRecordingHere);
      return kBadInput;
    }
    say(messages::kReportOf, {{"directory", *newest}});
    options.paths.push_back(*newest);
  }
  const read::Expected<report::Report> made = analyse(options.paths);
  if (!made) {
    say_error(made.error().message, made.error().values, hint(made.error().message, options.paths));
    return kBadInput;
  }
  if (options.paths.size() == 1 && !options.after_record && is_still_running(options.paths[0])) {
    say(messages::kStillRunning);
  }
  if (options.after_record) say_summary(*made);
  const bool terminal = options.output == "-" && isatty(STDOUT_FILENO) == 1;
  report::TextOptions rendering =
      report::options_for_terminal(terminal, options.colour, options.lang, process_environment());
  rendering.verbose = options.verbose;
  std::string text;
  if (options.json || options.format == "json") {
    text = report::to_json(*made);
  } else if (options.format == "html") {
    text = report::to_html(*made, rendering.language);
  } else if (options.format == "markdown") {
    text = report::to_markdown(*made, rendering.language);
  } else {
    text = report::render_text(*made, rendering);
  }
  if (!write_output_file(options.output, text, options.force)) return kBadInput;
  return run_gates(gates, *made);
}

}  // namespace

void add_report(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* report = app.add_subcommand(
      "report",
      "Say what a recording means: why the GPU is idle and what to change.\n"
      "\n"
      "  idlescope report                      the newest idlescope-* directory here\n"
      "  idlescope report run7 --format html -o run7.html");
  report->add_option("PATH", options->paths,
                     "Recording directories, trace files, PyTorch profiler JSON, nsys SQLite; "
                     "- is standard input");
  report->add_option("--format", options->format, "text, json, markdown or html")
      ->check(CLI::IsMember({"text", "json", "markdown", "html"}));
  report->add_flag("--json", options->json, "The same as --format json");
  report->add_option("-o,--output", options->output, "Write to this file instead of stdout");
  report->add_flag("-f,--force", options->force, "Overwrite that file");
  report->add_option("--color", options->colour, "auto, always or never")
      ->transform(CLI::Transformer(
          std::map<std::string, report::ColourChoice>{{"auto", report::ColourChoice::kAuto},
                                                      {"always", report::ColourChoice::kAlways},
                                                      {"never", report::ColourChoice::kNever}}));
  report->add_option("--fail-if", options->fail_if,
                     "Exit with 3 if this holds: 'DATA>10%', 'BUSY<80%', 'STEP>250ms'; repeatable");
  report->add_option("--lang", options->lang, "Language (en, zh)");
  report->add_flag("--after-record", options->after_record)->group("");  // hidden
  report->add_flag("-v,--verbose", options->verbose, "Leaves, evidence, processes, oddities");
  report->footer(
      "Exit code: 0 whatever the verdict; 1 wrong usage, 2 bad or empty input, 3 a\n"
      "--fail-if condition holds.");
  report->callback(
      [options, &selected] { selected.run = [options] { return run_report(*options); }; });
}

}  // namespace idlescope::tools
