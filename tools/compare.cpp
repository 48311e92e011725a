// `idlescope compare OLD NEW`, `idlescope compare OLD1 OLD2 -- NEW1 NEW2`: what a change did.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/report/compare.h"
#include "proto/report.pb.h"
#include "tools/analyse.h"
#include "tools/exit_codes.h"
#include "tools/job_identity.h"
#include "tools/say.h"
#include "tools/standard_output.h"
#include "tools/subcommand.h"

namespace idlescope::tools {
namespace {

struct CompareOptions {
  std::vector<std::string> paths;
  std::string lang;
};

bool analyse_all(const std::vector<std::string>& paths, std::vector<report::Report>* out) {
  for (const std::string& path : paths) {
    read::Expected<report::Report> made = analyse({path});
    if (!made) {
      say_error(made.error().message, made.error().values);
      return false;
    }
    out->push_back(std::move(*made));
  }
  return true;
}

int run_compare(const CompareOptions& options, const Selected& selected) {
  end_quietly_on_closed_pipe();
  std::vector<std::string> before = options.paths;
  std::vector<std::string> after = selected.job;  // behind the dashes
  if (!selected.has_dashes && before.size() == 2) {
    after = {before[1]};
    before.pop_back();
  }
  if (before.empty() || after.empty()) {
    throw UsageError("compare needs OLD NEW, or OLD1 OLD2 … -- NEW1 NEW2 …");
  }
  std::vector<report::Report> old_reports;
  std::vector<report::Report> new_reports;
  if (!analyse_all(before, &old_reports) || !analyse_all(after, &new_reports)) return kBadInput;
  const report::TextOptions rendering = report::options_for_terminal(
      isatty(STDOUT_FILENO) == 1, report::ColourChoice::kAuto, options.lang, process_environment());
  print(report::render_comparison(report::compare(old_reports, new_reports), rendering));
  return finish_printing() ? kOk : kBadInput;
}

}  // namespace

void add_compare(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "Say what a change did: step time, leaf by leaf, verdict then and now.\n"
      "\n"
      "  idlescope compare old-run new-run\n"
      "  idlescope compare old1 old2 old3 -- new1 new2 new3     repetitions decide");
  command->add_option("PATH", options->paths, "OLD NEW, or the old ones, -- and the new ones");
  command->add_option("--lang", options->lang, "Language (en, zh)");
  command->callback([options, &selected] {
    selected.run = [options, &selected] { return run_compare(*options, selected); };
  });
}

}  // namespace idlescope::tools
