// `idlescope completion bash|zsh|fish` and the manual page: the command line, described.
#include <CLI/CLI.hpp>

#include <memory>

#include "tools/completion_script.h"
#include "tools/described_command.h"
#include "tools/exit_codes.h"
#include "tools/manual_page.h"
#include "tools/standard_output.h"
#include "tools/subcommand.h"
#include "tools/version.h"

namespace idlescope::tools {

void add_completion(CLI::App& app, Selected& selected) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion =
      app.add_subcommand("completion",
                         "Print the completion of this command line for a shell.\n"
                         "\n"
                         "  source <(idlescope completion bash)        also zsh\n"
                         "  idlescope completion fish | source");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&app, shell, &selected] {
    selected.run = [&app, shell] {
      end_quietly_on_closed_pipe();
      const Shell kind = *shell == "bash"  ? Shell::kBash
                         : *shell == "zsh" ? Shell::kZsh
                                           : Shell::kFish;
      print(completion_script(kind, describe_commands(app)));
      return finish_printing() ? kOk : kBadInput;
    };
  });
}

// The build writes the manual page with it.
void add_manual(CLI::App& app, Selected& selected) {
  CLI::App* manual = app.add_subcommand("manual", "Print the manual page")->group("");
  manual->callback([&app, &selected] {
    selected.run = [&app] {
      end_quietly_on_closed_pipe();
      print(manual_page(describe_commands(app), kVersion));
      return finish_printing() ? kOk : kBadInput;
    };
  });
}

}  // namespace idlescope::tools
