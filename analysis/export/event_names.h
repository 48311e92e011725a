// What ops, host events and counters are called in exports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/export/event_sink.h"
#include "analysis/read/recording.h"

namespace idlescope::exporting {

std::string_view op_kind_name(trace::OpKind kind);
std::string_view op_category(trace::OpKind kind);   // as PyTorch's profiler: "kernel", "gpu_memcpy"
std::string dimensions(const uint32_t (&size)[3]);  // "32x4x1"

// Samples and bookkeeping events are not drawn.
bool is_shown(trace::HostEventKind kind);
std::string event_name(const read::HostEvent& event, const read::Strings& strings);
std::string_view event_category(trace::HostEventKind kind);

// Name and unit only.
Track counter_track(trace::CounterKind kind);

}  // namespace idlescope::exporting
