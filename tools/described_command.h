// The command line as data: what completions and the manual page are written from, so that
// they cannot lag behind the options.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace idlescope::tools {

struct DescribedOption {
  std::vector<std::string> names;  // "--format", "-o"
  std::string help;
  std::vector<std::string> values;  // that it takes, where they are a fixed set
  bool takes_value = false;
};

struct DescribedCommand {
  std::string name;
  std::string help;      // one line
  std::string examples;  // the lines below it, as `--help` prints them
  std::vector<DescribedOption> options;
  std::vector<DescribedOption> arguments;  // positional: "PATH"
  bool runs_a_command = false;             // record: what follows `--` is completed as a command
};

// Hidden commands and options are left out.
std::vector<DescribedCommand> describe_commands(const CLI::App& app);

}  // namespace idlescope::tools
