// Reads one .istrace file into a Process.
//
// In: the bytes of a serialised trace.Trace or any prefix of one. Out: a Process appended to
// the Recording, with anomalies for everything odd. Stages: packet_stream cuts, trace_tables
// resolves ids, trace_batches and host_chunk decode, arrange sorts and joins.
#pragma once

#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::read {

struct Recording;

// True if the bytes begin like a trace: a packet that holds a header.
bool looks_like_trace(std::string_view bytes);

Expected<void> read_trace(std::string_view bytes, const std::string& path, Recording& recording);

}  // namespace idlescope::read
