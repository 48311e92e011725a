// --steps and --duration: when they are reached the recording ends and the job goes on.
//
// In: steps and delivered batches, on the training thread. Out: an orderly end of the
// recording, once. Between steps it costs two comparisons.
#pragma once

#include <cstdint>

#include "profiler/session/options.h"

namespace idlescope::session {

// From the constructor.
void start_limits(const Options& options, int64_t now_ns);

// host::Listener::step: tells the device side, then checks the limits. Where a job has no step
// marks, delivered batches count as steps.
void step_seen(int64_t now_ns, bool from_loader);

}  // namespace idlescope::session
