// idlescope: why is my GPU idle, what should I change, what can it bring at most?
//
// Chooses the subcommand and turns every outcome into an exit code (exit_codes.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>

#include "analysis/report/text.h"
#include "proto/messages.h"
#include "tools/exit_codes.h"
#include "tools/help_format.h"
#include "tools/job_identity.h"
#include "tools/say.h"
#include "tools/similar_word.h"
#include "tools/subcommand.h"
#include "tools/version.h"

namespace {

using namespace idlescope;
using namespace idlescope::tools;

constexpr const char* kDescription =
    "Why is my GPU idle, what should I change, and what can it bring at most?\n"
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

// " ; did you mean report?", or nothing.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string name = similar_word(word, known);
  return name.empty() ? "" : words(messages::kDidYouMean, {{"name", name}});
}

// CLI11 says "A subcommand is required" for a misspelt one too, and nothing of what a misspelt
// option might have been.
void check_words(const CLI::App& app, const std::vector<std::string>& ours) {
  if (ours.empty() || ours[0].empty() || ours[0][0] == '-') return;
  std::string listed;
  std::vector<std::string> known;
  const CLI::App* chosen = nullptr;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == ours[0]) chosen = sub;
    if (sub->get_group().empty()) continue;  // hidden
    known.push_back(sub->get_name());
    listed += (listed.empty() ? "" : ", ") + sub->get_name();
  }
  if (!chosen) {
    throw UsageError(
        messages::kUnknownCommand,
        {{"word", ours[0]}, {"suggestion", suggestion(ours[0], known)}, {"known", listed}});
  }
  std::vector<std::string> names = {"--help", "-h"};
  for (const CLI::Option* option : chosen->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  for (size_t i = 1; i < ours.size(); ++i) {
    const std::string name = ours[i].substr(0, ours[i].find('='));
    // Behind the first plain word `record` has the job's own options.
    const CLI::Option* before = chosen->get_option_no_throw(ours[i - 1]);
    const bool is_value = before != nullptr && before->get_items_expected_max() > 0;
    if (ours[0] == "record" && name.compare(0, 1, "-") != 0 && !is_value) return;
    if (name.size() < 3 || name.compare(0, 2, "--") != 0) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw UsageError(
        messages::kUnknownOption,
        {{"command", ours[0]}, {"option", name}, {"suggestion", suggestion(name, names)}});
  }
}

// --lang decides for everything that is said, from the first error on; else the environment.
void choose_language(const std::vector<std::string>& ours) {
  std::string flag;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == "--lang" && i + 1 < ours.size()) flag = ours[i + 1];
    if (ours[i].compare(0, 7, "--lang=") == 0) flag = ours[i].substr(7);
  }
  speak(
      report::options_for_terminal(false, report::ColourChoice::kNever, flag, process_environment())
          .language);
}

int say_usage_error(const Selected& selected, const std::vector<std::string>& ours,
                    std::string_view id, std::string detail) {
  // A question ends its sentence by itself.
  for (const auto& [twice, once] : {std::pair{"?. ", "? "}, {"？。", "？"}}) {
    const size_t at = detail.find(twice);
    if (at != detail.npos) detail.replace(at, std::string_view(twice).size(), once);
  }
  const bool command =
      !ours.empty() && !ours[0].empty() && ours[0][0] != '-' && id != messages::kUnknownCommand.id;
  say_error_text(id, detail,
                 words(messages::kUsageHelp,
                       {{"command", command ? "idlescope " + ours[0] : std::string("idlescope")}}));
  return selected.usage_code;
}

int run(int argc, char** argv) {
  Selected selected;
  CLI::App app(kDescription, "idlescope");
  app.set_version_flag("-V,--version", std::string("idlescope ") + kVersion);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.formatter(std::make_shared<HelpFormat>());
  app.require_subcommand(1);
  app.footer(
      "idlescope COMMAND --help shows the options of one command.\n"
      "\n"
      "Exit codes: 0 ok, 1 wrong usage, 2 bad or empty input, 3 a gate is met, 4 a bug\n"
      "of idlescope, 130 Ctrl-C. `record` returns the job's own code; before the job\n"
      "started 125 our failure, 126 cannot be executed, 127 not found.");
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
  add_completion(app, selected);
  add_manual(app, selected);

  std::vector<std::string> ours = split_off_job(argc, argv, selected);
  choose_language(ours);
  if (!ours.empty() && ours[0] == "record") selected.usage_code = kRecordFailed;
  if (ours.empty() && !selected.has_dashes) {
    std::cout << app.help();
    return kUsage;
  }
  try {
    check_words(app, ours);
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>(ours.rbegin(), ours.rend()));
    return selected.run ? selected.run() : kUsage;
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success, std::cout, std::cerr);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return say_usage_error(selected, ours, messages::kUsage.id, error.what());
  } catch (const UsageError& error) {
    return say_usage_error(selected, ours, error.id.empty() ? messages::kUsage.id : error.id,
                           error.what());
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
