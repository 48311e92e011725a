#include "tools/described_command.h"

#include <CLI/CLI.hpp>

#include <map>

namespace idlescope::tools {
namespace {

// Options whose values are few and known; the same name means the same everywhere, but for
// `export`, which has no --format.
const std::map<std::string, std::vector<std::string>>& known_values() {
  static const auto* const values = new std::map<std::string, std::vector<std::string>>{
      {"--format", {"text", "json", "markdown", "html"}},
      {"--to", {"perfetto", "chrome", "csv"}},
      {"--lang", {"en", "zh"}},
      {"--color", {"auto", "always", "never"}},
      {"--window", {"auto", "full", "off"}},
      {"--detail", {"default", "full"}},
      {"SHELL", {"bash", "zsh", "fish"}},
  };
  return *values;
}

DescribedOption describe(const CLI::Option& option) {
  DescribedOption out;
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  if (out.names.empty()) out.names.push_back(option.get_name());
  out.help = option.get_description();
  out.takes_value = option.get_items_expected_max() > 0;
  const auto values = known_values().find(out.names[0]);
  if (values != known_values().end()) out.values = values->second;
  return out;
}

}  // namespace

std::vector<DescribedCommand> describe_commands(const CLI::App& app) {
  std::vector<DescribedCommand> out;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    DescribedCommand command;
    command.name = sub->get_name();
    const std::string text = sub->get_description();
    const size_t end = text.find('\n');
    command.help = text.substr(0, end);
    if (end != text.npos) command.examples = text.substr(text.find_first_not_of('\n', end));
    command.runs_a_command = command.name == "record";
    for (const CLI::Option* option : sub->get_options()) {
      if (option->get_group().empty()) continue;
      (option->get_positional() ? command.arguments : command.options).push_back(describe(*option));
    }
    out.push_back(std::move(command));
  }
  return out;
}

}  // namespace idlescope::tools
