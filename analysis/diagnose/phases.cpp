#include "analysis/diagnose/phases.h"

#include <algorithm>
#include <utility>

#include "proto/report.pb.h"

namespace idlescope::diagnose {
namespace {

void describe(const Shares& shares, Ns window_ns, Phase& phase) {
  phase.window_ns = window_ns;
  phase.leaves = shares.leaves;
  phase.verdict_shares = shares.verdicts;
  for (const VerdictShare& share : shares.verdicts) {
    if (share.verdict == report::COMPUTE) phase.busy_share = share.share;
  }
}

// Steps that only the device knows.
void from_device(const model::StepTrack& track, const DevicePass& training,
                 std::vector<Phase>& phases) {
  phases.clear();
  Phase train;
  train.name = "train";
  for (const model::DeviceStep& step : training.spans) {
    ++train.steps;
    train.total_ns += step.duration_ns();
  }
  if (train.steps == 0) return;
  train.mean_step_ns = train.total_ns / static_cast<Ns>(train.steps);
  phases.push_back(std::move(train));
  if (track.evaluation.empty()) return;
  Phase evaluation;
  evaluation.name = "evaluation";
  evaluation.steps = track.evaluation_batches;
  phases.push_back(std::move(evaluation));
}

}  // namespace

std::vector<model::DeviceStep> evaluation_spans(const model::Model& model, uint32_t d) {
  std::vector<model::DeviceStep> spans;
  const model::StepTrack& track = model.device_tracks[d];
  const model::DeviceTimeline& device = model.devices[d];
  const read::Process& process = model.process_of(device);
  for (uint32_t w = 0; w < device.windows.size(); ++w) {
    const model::WindowSpan& window = device.windows[w];
    std::vector<Ns> launches;
    if (!track.on_device) launches = model::launch_times(process, device, window);
    for (const model::Stretch& stretch : track.evaluation) {
      if (stretch.end_ns <= window.begin_ns || stretch.begin_ns >= window.end_ns) continue;
      model::DeviceStep span;
      span.window = w;
      span.begin_ns = std::max(stretch.begin_ns, window.begin_ns);
      span.end_ns = std::min(stretch.end_ns, window.end_ns);
      if (!spans.empty()) span.begin_ns = std::max(span.begin_ns, spans.back().end_ns);
      for (size_t i = window.first; i < window.last; ++i) {
        const read::Op& op = process.ops[device.ops[i]];
        const Ns launch = track.on_device ? op.begin_ns : launches[i - window.first];
        if (launch >= stretch.end_ns) continue;
        if (launch < stretch.begin_ns) {
          span.begin_ns = std::max(span.begin_ns, op.end_ns);
        } else {
          span.end_ns = std::max(span.end_ns, op.end_ns);
          ++span.ops;
        }
      }
      if (span.ops > 0 && span.end_ns > span.begin_ns) spans.push_back(span);
    }
  }
  return spans;
}

void complete_phases(const model::Model& model, const DevicePass& training, const Shares& shares,
                     std::vector<Phase>& phases) {
  if (training.window_only) return;
  const model::StepTrack& track = model.device_tracks[training.device];
  const uint32_t process = model.devices[training.device].process;
  const bool device_only = track.boundaries != model.processes[process].track.boundaries;
  if (device_only) from_device(track, training, phases);
  for (Phase& phase : phases) {
    if (phase.name == "train") {
      describe(shares, training.ledger->total_ns(), phase);
      continue;
    }
    std::vector<model::DeviceStep> spans = evaluation_spans(model, training.device);
    if (device_only) {
      for (const model::DeviceStep& span : spans) phase.total_ns += span.duration_ns();
      if (phase.steps > 0) phase.mean_step_ns = phase.total_ns / static_cast<Ns>(phase.steps);
    }
    if (spans.empty()) continue;
    const DevicePass pass = run_device_pass(model, training.device, std::move(spans));
    describe(compute_shares(*pass.ledger, 0), pass.ledger->total_ns(), phase);
  }
}

}  // namespace idlescope::diagnose
