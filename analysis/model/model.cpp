#include "analysis/model/model.h"

#include <utility>

#include "analysis/model/steady_part.h"

namespace idlescope::model {
namespace {

// Warm-up seen from the host: leading steps longer than 1.5x the typical one. Steps of
// the whole run count, so a window in the middle of a job needs no warm-up of its own.
Ns steady_from(const StepTrack& track) {
  std::vector<int64_t> durations;
  std::vector<size_t> index;
  for (size_t i = 0; i + 1 < track.boundaries.size(); ++i) {
    if (track.in_evaluation(track.boundaries[i], track.boundaries[i + 1])) continue;
    durations.push_back(track.boundaries[i + 1] - track.boundaries[i]);
    index.push_back(i);
  }
  if (durations.empty()) return INT64_MIN;
  const size_t drop = warmup_length(durations);
  return drop == 0 ? INT64_MIN : track.boundaries[index[drop]];
}

}  // namespace

Model build_model(read::Recording&& recording) {
  Model model;
  model.recording = std::move(recording);
  model.clock = fit_clocks(model.recording);
  model.loader = build_loader_history(model.recording);
  model.processes.resize(model.recording.processes.size());
  for (uint32_t p = 0; p < model.processes.size(); ++p) {
    const read::Process& process = model.recording.processes[p];
    ProcessModel& out = model.processes[p];
    out.classes = effective_classes(process);
    out.work = classify_work(model.recording, process);
    out.threads = build_threads(process, out.classes);
    out.track = find_step_track(model.recording, model.loader, p);
    out.steady_from_ns = steady_from(out.track);
  }
  model.devices = build_device_timelines(model.recording);
  for (const DeviceTimeline& device : model.devices) {
    const read::Process& process = model.process_of(device);
    const ProcessModel& owner = model.processes[device.process];
    StepTrack track = owner.track;
    DeviceSteps steps;
    steps.steps = cut_device_steps(process, device, track.boundaries);
    select_steady(steps.steps, track, owner.steady_from_ns);
    if (steps.steps.empty()) {
      steps = cut_without_steps(process, device);
      track.anchor = "none";
    }
    model.device_steps.push_back(std::move(steps));
    model.device_tracks.push_back(std::move(track));
  }
  return model;
}

}  // namespace idlescope::model
