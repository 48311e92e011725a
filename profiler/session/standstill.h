// The training thread stands still between two steps while CUPTI comes or goes.
//
//   drain thread: hold ──► training thread, at its next step: held ──► attach or finalize ──►
//   release
//
// CUPTI's own structures are made and freed by an attach and a finalize, also those that a thread
// inside a launch is using: on an H200 (CUPTI 13.0) one of 263 attaches and detaches under seven
// launching threads ended in a corrupted heap. Between two steps the training thread is in no
// CUDA call; it holds Python's lock while it stands, so other Python threads soon stand too.
//
// In: the step marks of the job. Out: a moment without launches, where the job has marks. A wait
// is bounded on both sides: a job that marks nothing is switched as it runs.
#pragma once

#include <cstdint>

namespace idlescope::session {

// --- training thread, at the end of a step, if `hold` is set; a second at most
void stand_still();
// At a step that the drain thread wants to see at once: stands until it has looked.
void stand_still_here();

// --- drain thread
// Waits up to `limit_ns` for the training thread to stand still. True: it does, until released.
bool hold_training_thread(int64_t limit_ns);
void release_training_thread();
// Since when the training thread stands; 0: it does not.
int64_t training_thread_stands_since_ns();

}  // namespace idlescope::session
