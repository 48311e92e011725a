// Lines of ours on stderr: prefixed `idlescope:`, at most 80 columns, from the catalogue.
//
// A line that starts on a terminal clears the current one first, so that a progress bar of
// the job survives. Errors carry their id in brackets. Nothing here writes to stdout.
#pragma once

#include <string>
#include <string_view>

#include "analysis/report/words.h"
#include "proto/fill.h"
#include "proto/message.h"

namespace idlescope::tools {

// The language of everything said from here on; English until then.
void speak(report::Language language);

// A catalogue line in that language.
std::string words(const messages::Message& message, const messages::Values& values = {});

// "idlescope: text", continued lines indented under the text.
void say(const messages::Message& message, const messages::Values& values = {});

// "idlescope: [id] text"; `help` follows on lines of its own, indented by two.
void say_error(const messages::Message& message, const messages::Values& values = {},
               std::string_view help = {});
// The same with a text that is complete: "idlescope: [id] text".
void say_error_text(std::string_view id, std::string_view text, std::string_view help);
void say_help(std::string_view text);

// The text of `say` without the terminal's line clearing; for tests and say itself.
std::string wrap(std::string_view text, std::string_view first_indent, std::string_view next_indent,
                 size_t columns = 80);

}  // namespace idlescope::tools
