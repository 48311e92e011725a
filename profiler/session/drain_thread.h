// The recorder's one thread in a process that uses CUDA.
//
// In: wake-ups and requests of application threads (device_session.h). Out: windows opened
// and closed when the scheduler says so, records written every 100 ms while one is open. It
// is started inside cuInit, never before and never in loader workers, with all signals
// blocked. It never holds a lock while it calls CUPTI, and nothing it does shows up as a call
// of the job.
#pragma once

#include <cstdint>

namespace idlescope::session {

// False: the thread could not be started; the job goes on without device records.
bool start_drain_thread();
// Wakes it before its next tick. Any thread.
void wake_drain_thread();
// Asks it to close the window and end; true when it has, false after `limit_ns`.
bool stop_drain_thread(int64_t limit_ns);

}  // namespace idlescope::session
