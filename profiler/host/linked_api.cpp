// The event half of idlescope/recorder.h: steps, ranges, loader events of linked programs.
//
// Any thread of the job; nothing here waits, allocates or throws.
#include <string.h>

#include "profiler/emit/process_identity.h"
#include "profiler/host/host_events.h"
#include "profiler/host/ranges.h"
#include "profiler/include/idlescope/recorder.h"

#define IDLESCOPE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int64_t kStepFromApi = 2;  // StepSource of trace.proto
constexpr uint32_t kLastLoaderKind = 63;

}  // namespace

IDLESCOPE_EXPORT void idlescope_step(void) {
  if (!idlescope::emit::recording_possible()) return;
  idlescope::host::step_ended(idlescope::emit::monotonic_ns(), kStepFromApi, 0);
}

IDLESCOPE_EXPORT void idlescope_range_begin(const char* name) {
  if (name == nullptr) name = "";
  idlescope::host::push_range(idlescope::host::RangeCategory::kUser, name, strlen(name));
}

IDLESCOPE_EXPORT void idlescope_range_end(void) { idlescope::host::pop_range(); }

IDLESCOPE_EXPORT void idlescope_loader_event(uint32_t kind, int64_t begin_ns, uint32_t loader,
                                             int64_t batch, int64_t a, int64_t b, int64_t c) {
  if (kind == 0 || kind > kLastLoaderKind) return;
  const int64_t now_ns = idlescope::emit::monotonic_ns();
  idlescope::host::write_event({.kind = static_cast<idlescope::host::EventKind>(kind),
                                .begin_ns = begin_ns == 0 ? now_ns : begin_ns,
                                .end_ns = now_ns,
                                .iterator = loader,
                                .batch = batch,
                                .a = a,
                                .b = b,
                                .c = c});
  if (kind == static_cast<uint32_t>(idlescope::host::EventKind::kLoaderNext)) {
    idlescope::host::batch_delivered(now_ns);
  }
}
