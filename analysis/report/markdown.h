// The report as Markdown for an issue, a chat or a pull request.
//
// In: a finished Report. Out: GitHub-flavoured Markdown: the verdict, one table of the step,
// numbered fixes, checks and limits. Names from the trace cannot become markup.
#pragma once

#include <string>

#include "analysis/report/words.h"
#include "proto/report.pb.h"

namespace idlescope::report {

std::string to_markdown(const Report& report, Language language);

// Escaped for running text and table cells.
std::string escape_markdown(std::string_view text);

}  // namespace idlescope::report
