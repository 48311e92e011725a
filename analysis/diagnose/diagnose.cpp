#include "analysis/diagnose/diagnose.h"

#include <algorithm>
#include <utility>

#include "analysis/diagnose/collectives.h"
#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/device_summary.h"
#include "analysis/diagnose/evidence.h"
#include "analysis/diagnose/leaves.h"
#include "analysis/diagnose/loader_summary.h"
#include "analysis/diagnose/not_it.h"
#include "analysis/diagnose/phases.h"
#include "analysis/diagnose/ranks.h"
#include "analysis/diagnose/run_ledger.h"
#include "analysis/diagnose/run_verdict.h"
#include "analysis/diagnose/shares.h"
#include "analysis/diagnose/timelines.h"
#include "analysis/diagnose/verdict.h"
#include "analysis/model/steady_part.h"

namespace idlescope::diagnose {
namespace {

struct Judged {
  DevicePass pass;
  Shares shares;
  DeviceDiagnosis summary;
};

std::string join(const google::protobuf::RepeatedPtrField<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

ProcessSummary summarize_process(const read::Process& process) {
  ProcessSummary out;
  const trace::Process& identity = process.header.process();
  out.host = identity.host();
  out.pid = identity.pid();
  out.executable = identity.executable();
  out.command = join(identity.command_line());
  out.role = identity.role();
  out.has_rank = identity.has_rank();
  out.rank = identity.rank();
  out.world_size = identity.world_size();
  out.gpu_ops = process.ops.size();
  out.host_events = process.host_events.size();
  out.torch_version = identity.torch_version();
  out.python_version = identity.python_version();
  out.first_ns = process.first_ns;
  out.last_ns = process.last_ns;
  return out;
}

// The process whose story is told: most GPU work, else the one that runs the loop.
uint32_t choose_process(const model::Model& model) {
  uint32_t best = kNone;
  const auto key = [&](uint32_t p) {
    const read::Process& process = model.recording.processes[p];
    const bool worker = std::binary_search(model.loader.worker_processes.begin(),
                                           model.loader.worker_processes.end(), p) ||
                        process.header.process().role() == trace::Process::ROLE_LOADER_WORKER;
    return std::make_tuple(!process.ops.empty(), process.ops.size(), !worker,
                           model.processes[p].track.steps(), process.host_events.size());
  };
  for (uint32_t p = 0; p < model.recording.processes.size(); ++p) {
    if (best == kNone || key(p) > key(best)) best = p;
  }
  return best;
}

StepSummary summarize_steps(const model::Model& model, const Judged& judged, const RunResult& run) {
  StepSummary out;
  const DevicePass& pass = judged.pass;
  const model::StepTrack& track = model.device_tracks[pass.device];
  const model::DeviceSteps& steps = model.device_steps[pass.device];
  out.run_steps = run.steps;
  out.unprofiled_mean_ns = run.unprofiled_mean_ns;
  out.unprofiled_steps = run.unprofiled_steps;
  out.slowdown = run.slowdown;
  out.anchor = track.anchor;
  out.micro_steps = track.micro_steps;
  out.window_only = pass.window_only;
  out.startup_only = pass.window_only && steps.startup_only;
  if (pass.window_only) {
    out.warmup_ns = steps.warmup_ns;
    return out;
  }
  out.confidence = track.confidence;
  out.steady_steps = pass.spans.size();
  std::vector<int64_t> durations;
  uint64_t ops = 0;
  for (const model::DeviceStep& step : pass.spans) {
    durations.push_back(step.duration_ns());
    ops += step.ops;
  }
  double sum = 0;
  for (const int64_t d : durations) sum += static_cast<double>(d);
  out.mean_ns = sum / static_cast<double>(durations.size());
  out.mean_ci = mean_interval(durations);
  out.kernels_per_step = static_cast<double>(ops) / static_cast<double>(durations.size());
  out.median_ns = model::median(std::move(durations));
  for (const model::DeviceStep& step : steps.steps) {
    if (step.steady) break;
    ++out.dropped_warmup;
    out.warmup_ns += step.duration_ns();
  }
  return out;
}

// Marks the run's points that the analysed spans came from.
void mark_analysed(const DevicePass& pass, std::vector<StepPoint>& points) {
  for (StepPoint& point : points) point.steady = false;
  for (const model::DeviceStep& step : pass.spans) {
    if (step.host_step < points.size()) points[step.host_step].steady = true;
  }
}

// Step points where the host knows no steps but the device does.
void points_from_device(const model::Model& model, const DevicePass& pass,
                        std::vector<StepPoint>& points) {
  const model::DeviceTimeline& device = model.devices[pass.device];
  const read::Process& process = model.process_of(device);
  for (const model::DeviceStep& step : model.device_steps[pass.device].steps) {
    StepPoint point;
    point.begin_ns = step.begin_ns;
    point.duration_ns = step.duration_ns();
    const uint32_t window = device.windows[step.window].window;
    point.window_id = window < process.windows.size() ? process.windows[window].id : 1;
    point.steady = step.steady;
    points.push_back(point);
  }
}

void place_gaps(uint32_t device, std::vector<Gap>& gaps, const std::vector<StepPoint>& points) {
  for (Gap& gap : gaps) {
    gap.device = device;
    const auto it = std::partition_point(points.begin(), points.end(), [&](const auto& point) {
      return point.begin_ns <= gap.begin_ns;
    });
    if (it == points.begin()) continue;
    const StepPoint& point = *(it - 1);
    if (gap.begin_ns < point.begin_ns + point.duration_ns) gap.step = (it - 1) - points.begin();
  }
}

void judge_host_only(const RunResult& run, bool imported, Diagnosis& out) {
  out.verdict = report::CANNOT_TELL;
  out.certainty = report::CANNOT_TELL_YET;
  out.ledger = report::LEDGER_RUN;
  out.reason = Reason::kNoDevice;
  // A profile of another tool is finished: no step will come.
  if (run.run.no_step_yet && !imported) out.reason = Reason::kNoStepYet;
  if (run.run.still_compiling) out.reason = Reason::kStillCompiling;
  const bool nothing = std::all_of(out.processes.begin(), out.processes.end(), [](const auto& p) {
    return p.host_events == 0 && p.gpu_ops == 0;
  });
  if (nothing) out.reason = Reason::kNothing;
}

}  // namespace

Diagnosis diagnose(const model::Model& model) {
  Diagnosis out;
  for (const read::Process& process : model.recording.processes) {
    out.processes.push_back(summarize_process(process));
  }
  out.chosen_process = choose_process(model);
  if (out.chosen_process == kNone) {
    out.verdict = report::CANNOT_TELL;
    out.certainty = report::CANNOT_TELL_YET;
    out.reason = Reason::kNothing;
    return out;
  }
  const uint32_t chosen = out.chosen_process;
  const read::Process& process = model.recording.processes[chosen];
  out.command = out.processes[chosen].command;
  out.begin_ns = INT64_MAX;
  out.end_ns = INT64_MIN;
  for (const read::Process& p : model.recording.processes) {
    if (p.first_ns == 0 && p.last_ns == 0) continue;
    out.begin_ns = std::min(out.begin_ns, p.first_ns);
    out.end_ns = std::max(out.end_ns, p.last_ns);
  }
  if (out.begin_ns > out.end_ns) out.begin_ns = out.end_ns = 0;

  const RunResult run = build_run_ledger(model, chosen);
  out.run = run.run;
  out.step_points = run.points;
  out.phases = run.phases;
  out.step.run_steps = run.steps;
  out.step.anchor = model.processes[chosen].track.anchor;
  out.step.confidence = model.processes[chosen].track.confidence;
  out.step.micro_steps = model.processes[chosen].track.micro_steps;
  out.step.unprofiled_mean_ns = run.unprofiled_mean_ns;
  out.step.unprofiled_steps = run.unprofiled_steps;
  out.step.slowdown = run.slowdown;

  std::vector<Judged> judged(model.devices.size());
  std::vector<DevicePass*> passes;
  for (uint32_t d = 0; d < judged.size(); ++d) {
    judged[d].pass = run_device_pass(model, d);
    passes.push_back(&judged[d].pass);
  }
  out.ranks = match_ranks(model, passes);
  for (Judged& one : judged) {
    one.shares = compute_shares(*one.pass.ledger, one.pass.window_only ? 0 : one.pass.spans.size());
    one.summary = summarize_device(model, one.pass, one.shares);
    const StepSummary steps = summarize_steps(model, one, run);
    VerdictInput input;
    input.shares = &one.shares;
    input.device = &one.summary;
    input.step = &steps;
    input.imported = model.recording.origin != read::Origin::kIdlescope;
    const VerdictResult verdict = decide(input);
    one.summary.verdict = verdict.verdict;
    one.summary.top_leaf = verdict.top_leaf;
    for (RankDiagnosis& rank : out.ranks) {
      if (rank.process != one.summary.process) continue;
      rank.verdict = verdict.verdict;
      rank.mean_step_ns = steps.mean_ns;
      rank.busy_share = static_cast<double>(one.summary.compute_ns + one.summary.mem_ns) /
                        static_cast<double>(std::max<Ns>(1, one.shares.base_ns));
    }
  }
  uint32_t best = kNone;
  for (uint32_t d = 0; d < judged.size(); ++d) {
    if (model.devices[d].process != chosen) continue;
    const auto absent = [&](uint32_t i) {
      return judged[i].summary.window_ns - judged[i].summary.compute_ns;
    };
    if (best == kNone || absent(d) > absent(best)) best = d;
  }
  out.chosen_device = best;

  const Ns loader_from =
      best != kNone && !judged[best].pass.spans.empty() && !judged[best].pass.window_only
          ? judged[best].pass.spans.front().begin_ns
          : std::max(process.first_ns, model.processes[chosen].steady_from_ns);
  const Ns loader_to = best != kNone && !judged[best].pass.spans.empty()
                           ? judged[best].pass.spans.back().end_ns
                           : process.last_ns;
  out.loader = summarize_loader(model, chosen, loader_from, loader_to);
  out.limiter = out.loader.seen ? find_limiter(model, chosen, out.loader, loader_from, loader_to)
                                : report::LIMITER_UNSPECIFIED;
  out.free_cores = free_cores(model, chosen, loader_from, loader_to);
  out.process_cpus = process_cpus(model, chosen, loader_from, loader_to);
  out.cost = summarize_cost(model, chosen);
  out.abstentions = find_abstentions(model, chosen, best != kNone);

  if (best == kNone) {
    out.evidence = summarize_evidence(model, chosen, nullptr, nullptr);
    judge_host_only(run, model.recording.origin != read::Origin::kIdlescope, out);
    return out;
  }
  Judged& device = judged[best];
  out.step = summarize_steps(model, device, run);
  out.evidence = summarize_evidence(model, chosen, &device.pass, &device.shares);
  if (!device.pass.window_only && out.step_points.empty()) {
    points_from_device(model, device.pass, out.step_points);
  } else if (!device.pass.window_only) {
    mark_analysed(device.pass, out.step_points);
  }
  VerdictInput input;
  input.shares = &device.shares;
  input.device = &device.summary;
  input.step = &out.step;
  input.imported = model.recording.origin != read::Origin::kIdlescope;
  input.dropped_share = out.evidence.dropped_share;
  input.longest_unexplained_queue_ns = device.pass.longest_unexplained_queue_ns;
  input.joined_poorly = out.evidence.join_rate < 0.995 &&
                        static_cast<double>(device.pass.unjoined_ended_ns) >
                            0.05 * static_cast<double>(std::max<Ns>(1, out.evidence.absent_ns));
  const VerdictResult verdict = decide(input);
  out.verdict = verdict.verdict;
  out.certainty = verdict.certainty;
  out.reason = verdict.reason;
  out.ledger = report::LEDGER_WINDOW;
  out.top_leaf = verdict.top_leaf;
  out.verdict_shares = verdict.shares;
  out.top_probability = device.shares.top_probability;
  device.summary.device_records_missing = verdict.records_missing;
  device.summary.verdict = verdict.verdict;
  device.summary.top_leaf = verdict.top_leaf;
  weigh_run_against_window(out.run, out);

  DeviceTables tables = tabulate_device(model, device.pass);
  out.kernels = std::move(tables.kernels);
  out.copies = std::move(tables.copies);
  out.calls = std::move(tables.calls);
  out.collectives = summarize_collectives(model, passes, best);
  complete_phases(model, device.pass, device.shares, out.phases);
  out.gaps = device.pass.gaps;
  place_gaps(best, out.gaps, out.step_points);
  out.timelines = draw_timelines(model, device.pass, out.gaps);
  const double steps = device.pass.window_only ? 0 : static_cast<double>(device.pass.spans.size());
  charge_loader(device.shares, model, chosen, device.pass, steps, out.loader);
  out.not_it = find_not_it(device.summary, out.calls, out.loader, steps);
  for (Judged& one : judged) out.devices.push_back(std::move(one.summary));
  return out;
}

Analysis analyze(read::Recording&& recording) {
  Analysis analysis;
  analysis.model = model::build_model(std::move(recording));
  analysis.diagnosis = diagnose(analysis.model);
  return analysis;
}

}  // namespace idlescope::diagnose
