#include "analysis/model/model.h"

#include <utility>

#include "analysis/model/op_anchors.h"
#include "analysis/model/steady_part.h"
#include "analysis/model/weight_updates.h"

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

// Steps that launch less than half of the work are not what the recording is about: the
// marks of an eager warm-up before a CUDA graph is replayed, for example. The two partial
// steps at the edges of a window belong to nobody, so few steps launch less.
bool speaks_for(const std::vector<DeviceStep>& steps, const DeviceTimeline& device) {
  uint64_t launched = 0;
  for (const DeviceStep& step : steps) launched += step.ops;
  const uint64_t edges = steps.empty() ? 0 : 2 * launched / steps.size() * device.windows.size();
  return 2 * (launched + edges) >= device.ops.size();
}

}  // namespace

Model build_model(read::Recording&& recording) {
  Model model;
  model.recording = std::move(recording);
  model.clock = fit_clocks(model.recording);
  model.loader = build_loader_history(model.recording);
  model.devices = build_device_timelines(model.recording);
  model.processes.resize(model.recording.processes.size());
  for (uint32_t p = 0; p < model.processes.size(); ++p) {
    const read::Process& process = model.recording.processes[p];
    ProcessModel& out = model.processes[p];
    out.classes = effective_classes(process);
    out.work = classify_work(model.recording, process);
    out.threads = build_threads(process, out.classes);
    out.track = find_step_track(model.recording, model.loader, p,
                                find_weight_updates(model.recording, p, model.devices));
    out.steady_from_ns = steady_from(out.track);
  }
  for (const DeviceTimeline& device : model.devices) {
    const read::Process& process = model.process_of(device);
    const ProcessModel& owner = model.processes[device.process];
    StepTrack track = owner.track;
    DeviceSteps steps;
    steps.steps = cut_device_steps(process, device, track);
    if (!speaks_for(steps.steps, device)) {
      const StepTrack ops_track = find_op_track(model.recording, process, device);
      const std::vector<DeviceStep> from_ops = cut_device_steps(process, device, ops_track);
      if (speaks_for(from_ops, device)) {
        steps.steps = from_ops;
        track = ops_track;
      } else {
        steps.steps.clear();
        track.anchor = ops_track.anchor;
        track.confidence = ops_track.confidence;
      }
    }
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
