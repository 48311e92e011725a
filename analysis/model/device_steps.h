// Steps as the device saw them: the spans whose time gets a cause.
//
// In: host boundaries and a device timeline. Out: per window the complete steps. A boundary
// on the device is max(host mark, end of the last op launched before the mark), so that the
// wait at the head of a step belongs to that step (amendment A1.12):
//
//   host    |mark      launches of step 1          |mark
//   device  ▓▓▓▓▓▓▓▓▓|   step 1: ░░░░████████████████████|
//           older ops                               its last op
//
// Invariants: steps of a window are contiguous and in time order; the first and the last
// partial step of a window are left out (the last one may end inside the window on the host
// and after it on the device: its ops are missing); each step launched at least one op.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/model/device_timeline.h"
#include "analysis/model/step_track.h"

namespace idlescope::model {

struct DeviceStep {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  uint32_t window = 0;         // index into DeviceTimeline::windows
  uint32_t host_step = kNone;  // index of the step in the track (the first, if merged)
  uint64_t ops = 0;            // launched by it
  bool steady = false;

  Ns duration_ns() const { return end_ns - begin_ns; }
};

struct DeviceSteps {
  std::vector<DeviceStep> steps;
  // Without steps: what is left of each window after warm-up.
  std::vector<DeviceStep> spans;
  bool startup_only = false;  // too little is left (amendment A1.13)
  Ns warmup_ns = 0;
};

// Time at which an op was launched; its begin where that is unknown.
Ns launch_time(const read::Process& process, const read::Op& op);

// Launch times of the ops of one window, as DeviceTimeline::ops. One without launch record
// was launched before the next one on its stream that has it (amendment A1.2).
std::vector<Ns> launch_times(const read::Process& process, const DeviceTimeline& timeline,
                             const WindowSpan& window);

// Boundaries are times of launching, or of the begin of ops where the host ran so far ahead
// that most launches lie before the window.
std::vector<DeviceStep> cut_device_steps(const read::Process& process,
                                         const DeviceTimeline& timeline, const StepTrack& track);

// Marks the steady steps. `steady_from_ns`: host time before which all is warm-up.
void select_steady(std::vector<DeviceStep>& steps, const StepTrack& track, Ns steady_from_ns);

// The windows without step structure, warm-up cut off.
DeviceSteps cut_without_steps(const read::Process& process, const DeviceTimeline& timeline);

}  // namespace idlescope::model
