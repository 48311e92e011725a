#include "tools/manual_page.h"

#include <fmt/format.h>

namespace idlescope::tools {
namespace {

// Text as troff prints it: no escapes, no requests at the beginning of a line.
std::string plain(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";  // a hyphen that can be copied
    } else {
      out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

void options(const std::vector<DescribedOption>& all, std::string* out) {
  for (const DescribedOption& option : all) {
    std::string names;
    for (const std::string& name : option.names) {
      names += (names.empty() ? "" : ", ") + ("\\fB" + plain(name) + "\\fR");
    }
    const bool named = option.names[0][0] == '-';
    *out += ".TP\n" + names + (named && option.takes_value ? " \\fIVALUE\\fR" : "") + "\n";
    *out += plain(option.help) + "\n";
  }
}

constexpr const char* kExitCodes = R"(.SH EXIT STATUS
.B record
returns the code of the command it ran, 128+n if signal n killed it; before the command has
started: 125 a failure of idlescope, 126 cannot be executed, 127 not found.
.PP
The others: 0 all went well, 1 wrong usage, 2 bad or empty input, 3 a gate
.RB ( \-\-fail\-if )
is met, 4 a bug in idlescope, 130 interrupted.
)";

constexpr const char* kEnvironment = R"(.SH ENVIRONMENT
.B IDLESCOPE_OUTPUT, IDLESCOPE_WINDOW, IDLESCOPE_BUDGET, IDLESCOPE_RANKS,
.B IDLESCOPE_DURATION, IDLESCOPE_STEPS, IDLESCOPE_MAX_SIZE, IDLESCOPE_LANG
stand for the options of the same name; an option wins.
.TP
.B IDLESCOPE_LOG
error, warn, info or debug: what the recorder says inside the job.
.TP
.B IDLESCOPE_DISABLE=1
nothing is recorded, whatever else is set.
.PP
.B NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS, LC_ALL, LC_MESSAGES
and
.B LANG
are respected.
)";

}  // namespace

std::string manual_page(const std::vector<DescribedCommand>& commands, const std::string& version) {
  std::string out =
      fmt::format(".TH IDLESCOPE 1 \"\" \"idlescope {}\" \"User Commands\"\n", version);
  out +=
      ".SH NAME\nidlescope \\- why is my GPU idle, what to change, what it can bring at most\n";
  out += ".SH SYNOPSIS\n";
  for (const DescribedCommand& command : commands) {
    out += ".br\n.B idlescope " + command.name + "\n";
    if (!command.options.empty()) out += "[\\fIoptions\\fR]";
    for (const DescribedOption& argument : command.arguments) {
      out += " [\\fI" + plain(argument.names[0]) + "\\fR ...]";
    }
    out += command.runs_a_command ? " \\-\\- \\fIcommand\\fR\n" : "\n";
  }
  out += ".SH COMMANDS\n";
  for (const DescribedCommand& command : commands) {
    out += ".SS " + command.name + "\n" + plain(command.help) + "\n";
    if (!command.examples.empty()) {
      out += ".PP\n.nf\n" + plain(command.examples) + "\n.fi\n";
    }
    options(command.arguments, &out);
    options(command.options, &out);
  }
  return out + kExitCodes + kEnvironment;
}

}  // namespace idlescope::tools
