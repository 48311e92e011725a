// The report as JSON: the standard protobuf mapping of report.proto with original field
// names, the same in every language and stable from run to run (map keys sorted).
#pragma once

#include <string>

#include "proto/report.pb.h"

namespace idlescope::report {

std::string to_json(const Report& report);

}  // namespace idlescope::report
