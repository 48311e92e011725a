#include "profiler/session/entry.h"

#include "profiler/host/nvtx_hooks.h"
#include "profiler/host/python_bridge.h"
#include "profiler/session/device_session.h"

#define IDLESCOPE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// glibc hands a constructor the program's own arguments.
__attribute__((constructor)) void load(int argument_count, char** arguments, char**) {
  idlescope::session::start_library(argument_count, arguments);
}

__attribute__((destructor)) void unload() { idlescope::session::finish_library(); }

}  // namespace

// The CUDA driver calls this inside cuInit (CUDA_INJECTION64_PATH). Non-zero: accepted.
IDLESCOPE_EXPORT int InitializeInjection(void) {
  idlescope::session::on_cuda_initialized();
  idlescope::host::queue_late_installation();
  return 1;
}

// NVTX calls this at its first use (NVTX_INJECTION64_PATH).
IDLESCOPE_EXPORT int InitializeInjectionNvtx2(void* get_export_table) {
  return idlescope::host::initialize_nvtx(get_export_table);
}
