// idlescope: why is my GPU idle, what should I change, how much faster will it get?
//
// Chooses the subcommand and turns every outcome into an exit code (exit_codes.h).
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "proto/messages.h"
#include "tools/exit_codes.h"
#include "tools/help_format.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/version.h"

namespace {

using namespace idlescope;
using namespace idlescope::tools;

constexpr const char* kDescription =
    "Why is my GPU idle, what should I change, and how much faster will it get?\n"
    "\n"
    "  idlescope record -- python train.py   run a job, then say what holds it back\n"
    "  idlescope report                      the newest recording here, again";

// Everything behind the first `--` belongs to the job and is not ours to parse.
std::vector<std::string> split_off_job(int argc, char** argv, Selected& selected) {
  std::vector<std::string> ours;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") {
      selected.has_dashes = true;
      selected.job.assign(argv + i + 1, argv + argc);
      break;
    }
    ours.emplace_back(argv[i]);
  }
  return ours;
}

// CLI11 says "A subcommand is required" for a misspelt one too.
void check_subcommand(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].empty() || words[0][0] == '-') return;
  std::string known;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == words[0]) return;
    known += (known.empty() ? "" : ", ") + sub->get_name();
  }
  throw UsageError(words[0] + " is not one of the subcommands " + known);
}

int run(int argc, char** argv) {
  Selected selected;
  CLI::App app(kDescription, "idlescope");
  app.set_version_flag("-V,--version", std::string("idlescope ") + kVersion);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.formatter(std::make_shared<HelpFormat>());
  app.require_subcommand(1);
  app.failure_message(
      [](const CLI::App*, const CLI::Error& error) { return std::string(error.what()); });
  add_record(app, selected);
  add_report(app, selected);
  add_compare(app, selected);
  add_export(app, selected);
#ifdef IDLESCOPE_WITH_PACK
  add_pack(app, selected);
#endif
  add_dump(app, selected);
  add_ctl(app, selected);
  add_doctor(app, selected);

  std::vector<std::string> ours = split_off_job(argc, argv, selected);
  if (!ours.empty() && ours[0] == "record") selected.usage_code = kRecordFailed;
  try {
    check_subcommand(app, ours);
    std::reverse(ours.begin(), ours.end());  // CLI11 takes the words from the back
    app.parse(std::move(ours));
    return selected.run ? selected.run() : kUsage;
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success, std::cout, std::cerr);
    return kOk;
  } catch (const CLI::ParseError& error) {
    say_error(messages::kUsage, {{"detail", error.what()}}, "idlescope --help shows how");
    return selected.usage_code;
  } catch (const UsageError& error) {
    say_error(messages::kUsage, {{"detail", error.what()}}, "idlescope --help shows how");
    return selected.usage_code;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    say_error(messages::kInternal, {{"detail", error.what()}});
    return argc > 1 && std::string_view(argv[1]) == "record" ? kRecordFailed : kOurBug;
  }
}
