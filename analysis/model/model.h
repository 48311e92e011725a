// One recording, ready for diagnosis: one clock, device and thread timelines, the loader's
// history and the steps.
//
// In: read::Recording (moved in: the tables are shifted in place and referred to by
// index). Out: Model. Nothing here decides what a time was lost to; that is diagnose/.
#pragma once

#include <vector>

#include "analysis/model/clock_fit.h"
#include "analysis/model/device_steps.h"
#include "analysis/model/device_timeline.h"
#include "analysis/model/loader_history.h"
#include "analysis/model/step_track.h"
#include "analysis/model/thread_timeline.h"

namespace idlescope::model {

struct ProcessModel {
  CallClasses classes;     // per call
  std::vector<Work> work;  // per op descriptor
  ProcessThreads threads;
  StepTrack track;
  Ns steady_from_ns = 0;  // host steps before it are warm-up
};

struct Model {
  read::Recording recording;
  ClockFit clock;
  LoaderHistory loader;
  std::vector<ProcessModel> processes;  // as Recording::processes
  std::vector<DeviceTimeline> devices;
  std::vector<DeviceSteps> device_steps;  // as devices
  std::vector<StepTrack> device_tracks;   // as devices: the track its steps came from

  const read::Process& process_of(const DeviceTimeline& device) const {
    return recording.processes[device.process];
  }
};

Model build_model(read::Recording&& recording);

}  // namespace idlescope::model
