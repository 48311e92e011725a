// stdout of the subcommands that print results: a closed pipe ends quietly, a full disk is
// an error with its own message.
#pragma once

#include <string>
#include <string_view>

namespace idlescope::tools {

// `report | head` must end without a word: SIGPIPE gets its default action back, also where
// a parent ignored it. Not for record, whose job inherits the disposition.
void end_quietly_on_closed_pipe();

void print(std::string_view text);

// Flushes; false and a message if anything could not be written.
bool finish_printing();

// Writes to a file that must not exist unless `force`; "-" is stdout. False and a message if
// that failed.
bool write_output_file(const std::string& path, std::string_view text, bool force);

}  // namespace idlescope::tools
