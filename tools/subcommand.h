// One subcommand a file: each adds itself to the command line and says what to run.
//
// In: a CLI::App. Out: when the user chose the subcommand, `selected.run` is set; main
// calls it and exits with its result. A subcommand throws nothing on purpose: bad input is
// a Fault (exit 2), wrong usage a UsageError (exit 1), anything else our bug (exit 4).
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "proto/fill.h"
#include "proto/message.h"
#include "tools/say.h"

namespace CLI {
class App;
}

namespace idlescope::tools {

struct Selected {
  std::function<int()> run;
  // Everything behind `--`, and whether there was one: the job of record and verify.
  std::vector<std::string> job;
  bool has_dashes = false;
  // Code for errors before the job starts: 125 for record, 1 for the others.
  int usage_code = 1;
};

// Wrong usage; the text is a catalogue line in the language of the program, or a line of the
// command line parser.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  UsageError(const messages::Message& message, const messages::Values& values)
      : std::runtime_error(words(message, values)), id(message.id) {}

  std::string_view id;  // empty: "usage"
};

void add_completion(CLI::App& app, Selected& selected);
void add_compare(CLI::App& app, Selected& selected);
void add_ctl(CLI::App& app, Selected& selected);
void add_doctor(CLI::App& app, Selected& selected);
void add_dump(CLI::App& app, Selected& selected);
void add_export(CLI::App& app, Selected& selected);
void add_manual(CLI::App& app, Selected& selected);  // hidden
void add_pack(CLI::App& app, Selected& selected);    // where libarchive was found
void add_record(CLI::App& app, Selected& selected);
void add_report(CLI::App& app, Selected& selected);

}  // namespace idlescope::tools
