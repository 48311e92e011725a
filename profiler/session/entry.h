// How the library gets into a process and out of it.
//
//   constructor (LD_PRELOAD)         options, fork page, injection variables, Python bridge
//   InitializeInjection (cuInit)     device_session.h: on_cuda_initialized
//   InitializeInjectionNvtx2 (NVTX)  host/nvtx_hooks.h
//   destructor (exit)                device_session.h: finish_device, then the Footer
//
// Nothing depends on the destructor: loader workers end in _exit, jobs are killed.
#pragma once

namespace idlescope::session {

// What the constructor does, callable by tests. Further calls do nothing.
void start_library(int argument_count, char* const* arguments);
// What the destructor does. Further calls do nothing.
void finish_library();
// --steps or --duration is reached: the same, and for all processes of the job.
void finish_job();

}  // namespace idlescope::session
