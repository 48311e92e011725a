// The recorder's one line on stderr, and its Status in the file.
//
// In: a message id of proto/messages_en.def with values. Out: at most one line a process (and
// one per job where children inherit the failure), `idlescope: [id] text`; on a terminal the
// current line is cleared first, so that progress bars survive. Any thread. No allocation.
#pragma once

#include <cstddef>

namespace idlescope::session {

struct MessageValue {
  const char* name;
  const char* text;
};

// Fills {name} in `pattern`; returns the length written, always terminated.
size_t fill_message(char* out, size_t capacity, const char* pattern, size_t pattern_size,
                    const MessageValue* values, size_t count);

// Once, before anything can fail and before any fork: from here on the line is printed once
// for this process and all that it forks.
void share_complaint_with_children();

// Prints the line once for this process, whatever the id. Prints nothing under
// IDLESCOPE_DISABLE and in processes of other ranks than the first (only rank 0 speaks).
void complain_once(const char* message_id, const MessageValue* values, size_t count);

// emit::FailureReport: the file cannot be made or grown.
void report_file_failure(const char* message_id, const char* path, int error);

// For IDLESCOPE_LOG=debug: `idlescope: debug: text`.
void debug_line(const char* text);

}  // namespace idlescope::session
