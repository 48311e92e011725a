// Where a worker's time goes: which user function of the dataset a sampled fetch spent it in.
//
// In: one fetch in many, profiled by CPython's own profile hook (one slot a thread, taken only
// if it is free, given back after the fetch). Out: EVENT_WORKER_FRAME per user function. No
// thread, no signal, no ptrace. GIL held.
#pragma once

#include <cstdint>

namespace idlescope::host {

// Off by IDLESCOPE_FRAMES=0.
void enable_frame_sampler(bool on);

// True: this fetch is profiled.
bool begin_frame_sample(int64_t now_ns);
void end_frame_sample(int64_t now_ns);
void write_frame_sample(int64_t begin_ns, int64_t end_ns);
// Every fetch, for the choice of the next one to profile.
void frame_sampler_saw(int64_t duration_ns);

}  // namespace idlescope::host
