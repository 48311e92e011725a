// The report as one HTML file that can be mailed: opens on the verdict, needs no server and
// makes no request (its content security policy forbids any).
//
// In: a finished Report. Out: the whole file. Page 1 and all tables are plain HTML and work
// without JavaScript; the drawings of pages 2, 3 and 5 are made by the built-in script from an
// embedded JSON block that holds only what is drawn. Names from the trace are escaped.
#pragma once

#include <string>

#include "analysis/report/words.h"
#include "proto/report.pb.h"

namespace idlescope::report {

std::string to_html(const Report& report, Language language);

}  // namespace idlescope::report
