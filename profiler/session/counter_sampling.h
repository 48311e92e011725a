// The counters of the drain thread: what the process and its GPUs use, once a second.
//
// In: a tick of the drain thread. Out: CounterBatch packets (host/process_counters.h,
// host/nvml_sampler.h). Drain thread only; between two samples a call compares two clocks.
#pragma once

#include <cstdint>

namespace idlescope::session {

void sample_counters(int64_t now_ns);

}  // namespace idlescope::session
