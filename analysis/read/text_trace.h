// Hand-written traces: the text form of idlescope.trace.Trace, as protobuf's text format.
//
// In: a .txtpb file, the input of golden cases. Out: the same trace serialised, which the
// native reader then takes like any recording.
#pragma once

#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::read {

// Fault not-a-trace names line and column of the first mistake.
Expected<std::string> serialize_text_trace(std::string_view text, const std::string& path);

}  // namespace idlescope::read
