// The device side before profiler/session/drain is linked: nothing is attached. Weak, so that
// the real one replaces it.
#include "profiler/session/device_session.h"

#define IDLESCOPE_ABSENT __attribute__((weak))

namespace idlescope::session {

IDLESCOPE_ABSENT void on_cuda_initialized() {}
IDLESCOPE_ABSENT void on_step(int64_t, bool) {}
IDLESCOPE_ABSENT void on_capture(bool) {}
IDLESCOPE_ABSENT void on_other_profiler(bool) {}
IDLESCOPE_ABSENT void request_window(const char*) {}
IDLESCOPE_ABSENT void request_window_end(const char*) {}
IDLESCOPE_ABSENT void finish_device() {}
IDLESCOPE_ABSENT DeviceStatistics device_statistics() {
  DeviceStatistics none{};
  none.estimated_cost_ns = -1;
  return none;
}

}  // namespace idlescope::session
