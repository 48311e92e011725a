// Prints a trace file packet by packet: debugger, test oracle and format documentation.
//
// In: the path of an .istrace or .txtpb file. Out: one line of JSON per packet, in file
// order, handed to `sink` without the line end. Batches and host chunks are expanded to
// records with absolute times; compressed packets to what is in them. The last line says how
// the file ended. Interprets nothing: ids stay ids.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::read {

Expected<void> dump_packets(const std::string& path,
                            const std::function<void(std::string_view line)>& sink);

}  // namespace idlescope::read
