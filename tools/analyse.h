// The analyzer as one call: read, model, diagnose, build the report.
//
// In: what the user named. Out: the finished report, or the fault that says what the input
// is and what to do. Shared by report, compare, export and the end of record.
#pragma once

#include <string>
#include <vector>

#include "analysis/read/fault.h"

namespace idlescope::report {
class Report;
}

namespace idlescope::tools {

read::Expected<report::Report> analyse(const std::vector<std::string>& paths);

}  // namespace idlescope::tools
