// The steering half of idlescope/recorder.h: windows, flush, status.
//
// Any thread of the job, at any time; nothing here waits, allocates or throws.
#include <stdio.h>
#include <string.h>

#include "profiler/emit/trace_file.h"
#include "profiler/include/idlescope/recorder.h"
#include "profiler/session/device_session.h"

#define IDLESCOPE_EXPORT extern "C" __attribute__((visibility("default")))

IDLESCOPE_EXPORT idlescope_result idlescope_start(void) {
  if (!idlescope::emit::recording_possible() && !idlescope::emit::resume_recording()) {
    return IDLESCOPE_NOT_RECORDING;
  }
  idlescope::session::request_window();
  return IDLESCOPE_OK;
}

IDLESCOPE_EXPORT idlescope_result idlescope_stop(void) {
  if (!idlescope::emit::recording_possible()) return IDLESCOPE_NOT_RECORDING;
  idlescope::session::request_window_end();
  return IDLESCOPE_OK;
}

IDLESCOPE_EXPORT idlescope_result idlescope_flush(void) {
  if (!idlescope::emit::recording_possible()) return IDLESCOPE_NOT_RECORDING;
  idlescope::session::flush_device();
  return IDLESCOPE_OK;
}

IDLESCOPE_EXPORT idlescope_result idlescope_get_status(idlescope_status* status) {
  if (status == nullptr || status->size == 0) return IDLESCOPE_FAILED;
  const idlescope::session::DeviceStatistics device = idlescope::session::device_statistics();
  const idlescope::emit::FileStatistics file = idlescope::emit::file_statistics();
  idlescope_status full = {};
  full.size = status->size;
  full.recording = idlescope::emit::recording_possible() ? 1 : 0;
  full.window_open = device.window_open ? 1 : 0;
  full.windows = device.windows;
  full.steps = device.steps;
  full.file_bytes = file.file_bytes;
  snprintf(full.path, sizeof full.path, "%s", idlescope::emit::trace_path());
  memcpy(status, &full, status->size < sizeof full ? status->size : sizeof full);
  return full.recording != 0 ? IDLESCOPE_OK : IDLESCOPE_NOT_RECORDING;
}
