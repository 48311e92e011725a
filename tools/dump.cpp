// `idlescope dump FILE…`: a trace packet by packet, one JSON line each.
#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/read/dump.h"
#include "tools/exit_codes.h"
#include "tools/say.h"
#include "tools/standard_output.h"
#include "tools/subcommand.h"

namespace idlescope::tools {
namespace {

int run_dump(const std::vector<std::string>& paths) {
  end_quietly_on_closed_pipe();
  for (const std::string& path : paths) {
    const read::Expected<void> dumped = read::dump_packets(path, [](std::string_view line) {
      print(line);
      print("\n");
    });
    if (!dumped) {
      finish_printing();  // lines before the fault come first
      say_error(dumped.error().message, dumped.error().values);
      return kBadInput;
    }
  }
  return finish_printing() ? kOk : kBadInput;
}

}  // namespace

void add_dump(CLI::App& app, Selected& selected) {
  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* dump =
      app.add_subcommand("dump",
                         "Print a trace file packet by packet, as lines of JSON.\n"
                         "\n"
                         "  idlescope dump idlescope-train-1130-141207/host.4711.*.istrace | less\n"
                         "  idlescope dump a.istrace | grep gpu_ops | head");
  dump->add_option("FILE", *paths, "Trace files; - is standard input")->required();
  dump->callback([paths, &selected] { selected.run = [paths] { return run_dump(*paths); }; });
}

}  // namespace idlescope::tools
