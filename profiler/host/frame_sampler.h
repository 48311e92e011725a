// Where a worker's time goes: which of the user's functions a fetch spends it in.
//
// In: one fetch in many, watched by CPython's own profile hook (one slot a thread: taken only
// if it is free, given back after the fetch). Out: EVENT_WORKER_FRAME records, whose times add
// up to the fetches they stand for. No thread, no signal, no ptrace. How often: so rarely that
// it costs half a per cent of the fetch time (kShareOfTime), by the number of calls in the
// fetches that were watched.
//
// The time between two calls or returns belongs to the innermost frame of the user's own code
// (not of a library) and to the stage: the dataset's method or collate_fn that the fetch
// called, or, inside a Compose, the transform. GIL held; one fetch in the process at a time.
#pragma once

#include <cstdint>

#include "profiler/host/python_api.h"

namespace idlescope::host {

// `get_profile`: sys.getprofile, to see whether the slot is free. Without it nothing is
// sampled.
void enable_frame_sampler(PyObject* get_profile);

// True: this fetch is watched, until end_frame_sample.
bool begin_frame_sample(int64_t now_ns);
void end_frame_sample(int64_t now_ns);
// The records of the fetch that just ended, after its own.
void write_frame_sample(int64_t begin_ns, int64_t end_ns);
// Every fetch, watched or not.
void frame_sampler_saw(int64_t duration_ns);

}  // namespace idlescope::host
