#include "analysis/diagnose/run_ledger.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/diagnose/own_slowdown.h"
#include "analysis/model/steady_part.h"
#include "proto/report.pb.h"

namespace idlescope::diagnose {
namespace {

using model::Batch;
using model::Iterator;
using model::StepTrack;

struct Restart {  // an epoch that began
  Ns begin_ns = 0;
  Ns end_ns = 0;  // its first batch was there
  bool first = false;
};

// From the end of the last delivery before to the first delivery of the new epoch.
std::vector<Restart> find_restarts(const model::Model& model, uint32_t process) {
  struct Delivery {
    Ns begin_ns, end_ns;
    uint32_t iterator, epoch;
  };
  const StepTrack& track = model.processes[process].track;
  std::vector<Delivery> deliveries;
  for (uint32_t i = 0; i < model.loader.iterators.size(); ++i) {
    const Iterator& iterator = model.loader.iterators[i];
    if (iterator.process != process) continue;
    for (const uint32_t b : iterator.batches) {
      const Batch& batch = model.loader.batches[b];
      if (track.in_evaluation(batch.next_begin_ns, batch.next_end_ns)) continue;
      deliveries.push_back({batch.next_begin_ns, batch.next_end_ns, i, batch.epoch});
    }
  }
  std::sort(deliveries.begin(), deliveries.end(),
            [](const Delivery& a, const Delivery& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Restart> restarts;
  for (size_t i = 0; i < deliveries.size(); ++i) {
    const Delivery& now = deliveries[i];
    const bool first = i == 0;
    if (!first && deliveries[i - 1].iterator == now.iterator &&
        deliveries[i - 1].epoch == now.epoch) {
      continue;
    }
    // What belongs to the new epoch: creating workers, reset, its first next(); and the end
    // of the old one: the next() that found nothing, shutdown.
    const Ns not_before = first ? INT64_MIN : deliveries[i - 1].end_ns;
    Ns begin = now.begin_ns;
    for (const Iterator& iterator : model.loader.iterators) {
      if (iterator.process != process) continue;
      for (const uint32_t e : iterator.epoch_events) {
        const read::HostEvent& event = model.recording.processes[process].host_events[e];
        if (event.begin_ns >= not_before && event.end_ns <= now.end_ns) {
          begin = std::min(begin, event.begin_ns);
        }
      }
    }
    restarts.push_back({begin, now.end_ns, first});
  }
  return restarts;
}

struct Cause {
  report::Verdict verdict;
  report::Leaf leaf;
  std::string what;
  bool per_epoch = false;
  bool operator<(const Cause& other) const {
    return std::tie(verdict, leaf, what) < std::tie(other.verdict, other.leaf, other.what);
  }
};

// Long named things of the process that can make a step long.
struct Named {
  Ns begin_ns;
  Ns end_ns;
  Cause cause;
};

std::vector<Named> find_named(const model::Model& model, uint32_t process,
                              const std::vector<Restart>& restarts) {
  std::vector<Named> named;
  const read::Process& p = model.recording.processes[process];
  for (const read::HostEvent& event : p.host_events) {
    if (event.kind == trace::EVENT_CHECKPOINT) {
      named.push_back(
          {event.begin_ns, event.end_ns, {report::PERIODIC, report::CKPT, "checkpoint"}});
    } else if (event.kind == trace::EVENT_RANGE && event.b == trace::RANGE_COMPILE) {
      named.push_back(
          {event.begin_ns, event.end_ns, {report::COMPILE, report::COMPILE_JIT, "compile"}});
    } else if (event.kind == trace::EVENT_CAPTURE) {
      named.push_back({event.begin_ns,
                       event.end_ns,
                       {report::COMPILE, report::COMPILE_CAPTURE, "graph capture"}});
    } else if (event.kind == trace::EVENT_GC) {
      named.push_back(
          {event.begin_ns, event.end_ns, {report::HOST, report::HOST_GC, "garbage collection"}});
    } else if (event.kind == trace::EVENT_RANGE && event.b == trace::RANGE_LOGGING) {
      named.push_back(
          {event.begin_ns, event.end_ns, {report::HOST, report::HOST_LOGGING, "logging"}});
    }
  }
  for (const model::Stretch& pass : model.processes[process].track.evaluation) {
    named.push_back(
        {pass.begin_ns, pass.end_ns, {report::PERIODIC, report::HOST_EVALUATION, "evaluation"}});
  }
  for (const Restart& restart : restarts) {
    if (restart.first) continue;
    named.push_back({restart.begin_ns,
                     restart.end_ns,
                     {report::STARTUP, report::DATA_STARTUP, "first batch of an epoch", true}});
  }
  std::sort(named.begin(), named.end(),
            [](const Named& a, const Named& b) { return a.begin_ns < b.begin_ns; });
  return named;
}

// Regular distance of step numbers; 0 where they do not keep one.
double period_of(const std::vector<size_t>& at) {
  if (at.size() < 3) return 0;
  std::vector<int64_t> distances;
  for (size_t i = 1; i < at.size(); ++i) {
    distances.push_back(static_cast<int64_t>(at[i] - at[i - 1]));
  }
  const double middle = static_cast<double>(model::median(distances));
  size_t near = 0;
  for (const int64_t distance : distances) {
    const double off = std::abs(static_cast<double>(distance) - middle);
    if (off <= std::max(1.0, 0.1 * middle)) ++near;
  }
  if (middle < 2 || static_cast<double>(near) < 0.8 * static_cast<double>(distances.size())) {
    return 0;
  }
  return middle;
}

Ns wait_in_next(const std::vector<std::pair<Ns, Ns>>& waits, Ns begin_ns, Ns end_ns) {
  auto it = std::partition_point(waits.begin(), waits.end(),
                                 [&](const auto& wait) { return wait.second <= begin_ns; });
  Ns sum = 0;
  for (; it != waits.end() && it->first < end_ns; ++it) {
    sum += std::min(it->second, end_ns) - std::max(it->first, begin_ns);
  }
  return sum;
}

std::vector<std::pair<Ns, Ns>> collect_waits(const model::Model& model, uint32_t process) {
  std::vector<std::pair<Ns, Ns>> waits;
  for (const Iterator& iterator : model.loader.iterators) {
    if (iterator.process != process) continue;
    for (const uint32_t b : iterator.batches) {
      const Batch& batch = model.loader.batches[b];
      waits.push_back({batch.next_begin_ns, batch.next_end_ns});
    }
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

// Position of a step to the windows: inside one, outside all, or across an edge.
struct Windows {
  explicit Windows(const read::Process& process) : process_(process) {}
  uint32_t inside(Ns begin_ns, Ns end_ns) const {
    for (const read::Window& window : process_.windows) {
      if (window.begin_ns <= begin_ns && end_ns <= window.end_ns) return window.id;
    }
    return 0;
  }
  bool outside(Ns begin_ns, Ns end_ns) const {
    for (const read::Window& window : process_.windows) {
      // Attaching and detaching disturb the steps around a window too.
      if (begin_ns < window.detach_end_ns() && window.attach_begin_ns() < end_ns) return false;
    }
    return true;
  }
  Ns switching(Ns begin_ns, Ns end_ns) const {
    Ns sum = 0;
    for (const read::Window& window : process_.windows) {
      sum += window.switching_ns(begin_ns, end_ns);
    }
    return sum;
  }

 private:
  const read::Process& process_;
};

void add_stalls(const model::Model& model, uint32_t process, const std::vector<Restart>& restarts,
                const Windows& windows, Ns wall_ns, RunResult& out) {
  std::vector<int64_t> durations;
  for (const StepPoint& point : out.points) {
    if (point.steady) durations.push_back(point.duration_ns);
  }
  if (durations.size() < 10) return;
  const Ns typical = model::median(durations);
  std::vector<int64_t> deviations;
  for (const int64_t d : durations) deviations.push_back(std::abs(d - typical));
  const Ns limit = typical + std::max<Ns>(typical / 2, 5 * model::median(deviations));
  const std::vector<Named> named = find_named(model, process, restarts);
  struct Group {
    std::vector<size_t> steps;
    Ns excess_ns = 0;
  };
  std::map<Cause, Group> groups;
  size_t number = 0;
  for (StepPoint& point : out.points) {
    ++number;
    if (point.duration_ns <= limit || point.begin_ns < out.run.begin_ns + out.run.startup_ns) {
      continue;
    }
    const Ns end = point.begin_ns + point.duration_ns;
    // What we made the step wait is no stall of the job.
    const Ns ours = windows.switching(point.begin_ns, end);
    if (point.duration_ns - ours <= limit) continue;
    const Ns excess = point.duration_ns - ours - typical;
    Cause cause{report::PERIODIC, report::HOST_PYTHON, ""};
    Ns covered = 0;
    for (auto it = named.begin(); it != named.end() && it->begin_ns < end; ++it) {
      const Ns overlap = std::min(it->end_ns, end) - std::max(it->begin_ns, point.begin_ns);
      if (overlap > covered) {
        covered = overlap;
        cause = it->cause;
      }
    }
    if (3 * covered < excess) {
      cause = {report::PERIODIC, report::HOST_PYTHON, ""};
      if (point.data_wait_ns > 2 * excess / 3) {
        covered = point.data_wait_ns;
        cause = {report::DATA, report::DATA_FETCH, "waiting for a batch"};
      }
    }
    if (cause.leaf == report::CKPT) point.mark = "checkpoint";
    if (cause.per_epoch) point.mark = "epoch";
    Group& group = groups[cause];
    group.steps.push_back(number);
    group.excess_ns += cause.what.empty() ? excess : std::min(excess, covered);
  }
  for (const auto& [cause, group] : groups) {
    RunStall stall;
    stall.verdict = cause.verdict;
    stall.leaf = cause.leaf;
    stall.count = group.steps.size();
    stall.period_steps = period_of(group.steps);
    stall.total_ns = group.excess_ns;
    stall.mean_ns = group.excess_ns / static_cast<Ns>(group.steps.size());
    stall.share_of_run =
        wall_ns > 0 ? static_cast<double>(group.excess_ns) / static_cast<double>(wall_ns) : 0;
    stall.per_epoch = cause.per_epoch;
    stall.what = cause.what;
    // An unnamed stall without a period is noise, not a finding.
    if (stall.what.empty() && stall.period_steps == 0) continue;
    out.run.stalls.push_back(stall);
  }
  std::stable_sort(out.run.stalls.begin(), out.run.stalls.end(),
                   [](const RunStall& a, const RunStall& b) { return a.total_ns > b.total_ns; });
}

}  // namespace

RunResult build_run_ledger(const model::Model& model, uint32_t process) {
  RunResult out;
  const read::Process& p = model.recording.processes[process];
  const model::ProcessModel& owner = model.processes[process];
  const StepTrack& track = owner.track;
  out.run.begin_ns = p.first_ns;
  out.run.end_ns = p.last_ns;
  const Ns wall = p.last_ns - p.first_ns;
  const std::vector<std::pair<Ns, Ns>> waits = collect_waits(model, process);
  const std::vector<Restart> restarts = find_restarts(model, process);
  const Windows windows(p);
  const Ns steady_from = owner.steady_from_ns;

  std::vector<int64_t> all, outside;
  for (size_t i = 0; i + 1 < track.boundaries.size(); ++i) {
    StepPoint point;
    point.begin_ns = track.boundaries[i];
    const Ns end = track.boundaries[i + 1];
    point.duration_ns = end - point.begin_ns;
    point.window_id = windows.inside(point.begin_ns, end);
    point.data_wait_ns = waits.empty() ? -1 : wait_in_next(waits, point.begin_ns, end);
    const bool evaluation = track.in_evaluation(point.begin_ns, end);
    point.steady = !evaluation && point.begin_ns >= steady_from;
    if (point.steady) {
      all.push_back(point.duration_ns);
      out.run.loader_wait_ns += std::max<Ns>(0, point.data_wait_ns);
      if (windows.outside(point.begin_ns, end)) outside.push_back(point.duration_ns);
    }
    out.points.push_back(point);
  }
  out.steps = out.points.size();
  const auto mean = [](const std::vector<int64_t>& values) {
    return values.empty() ? 0.0
                          : std::accumulate(values.begin(), values.end(), 0.0) /
                                static_cast<double>(values.size());
  };
  out.run.mean_step_ns = mean(all);
  out.run.median_step_ns = model::median(all);
  if (out.run.mean_step_ns > 0) {
    out.run.loader_wait_share = static_cast<double>(out.run.loader_wait_ns) /
                                (out.run.mean_step_ns * static_cast<double>(all.size()));
  }
  if (!p.windows.empty() && outside.size() >= 5) {
    out.unprofiled_mean_ns = mean(outside);
    out.unprofiled_steps = outside.size();
  }
  out.slowdown = own_slowdown(p, out.points, steady_from);

  // Start-up: until the first steady step.
  for (const StepPoint& point : out.points) {
    if (!point.steady) continue;
    out.run.startup_ns = point.begin_ns - out.run.begin_ns;
    out.run.loop_ns = out.points.back().begin_ns + out.points.back().duration_ns - point.begin_ns;
    break;
  }
  const Ns startup_end = out.run.begin_ns + out.run.startup_ns;
  for (const Iterator& iterator : model.loader.iterators) {
    if (iterator.process != process) continue;
    out.run.startup_loader_ns +=
        std::max<Ns>(0, std::min(iterator.create_end_ns, startup_end) -
                            std::min(iterator.create_begin_ns, startup_end));
  }
  out.run.startup_loader_ns += wait_in_next(waits, out.run.begin_ns, startup_end);
  out.run.epochs = restarts.size();
  for (const Restart& restart : restarts) {
    // A step would have passed anyway.
    const Ns ours = windows.switching(restart.begin_ns, restart.end_ns);
    const Ns took =
        std::max<Ns>(0, restart.end_ns - restart.begin_ns - ours - out.run.median_step_ns);
    if (restart.first) {
      out.run.first_batch_ns = took;
    } else {
      out.run.epoch_restart_ns += took;
    }
  }
  for (const Iterator& iterator : model.loader.iterators) {
    if (iterator.process == process && iterator.batch_size > 0) {
      out.run.samples_per_step = static_cast<double>(iterator.batch_size) * track.micro_steps;
    }
  }
  for (const read::HostEvent& event : p.host_events) {
    const bool compile = event.kind == trace::EVENT_CAPTURE ||
                         (event.kind == trace::EVENT_RANGE && event.b == trace::RANGE_COMPILE);
    if (!compile) continue;
    if (event.begin_ns > startup_end && out.run.startup_ns > 0) {
      ++out.run.compiles;
      out.run.compile_ns += std::max<Ns>(0, event.end_ns - event.begin_ns);
      if (event.kind == trace::EVENT_CAPTURE) ++out.run.captures;
    }
    if (wall > 0 && event.end_ns + wall / 10 > p.last_ns) out.run.still_compiling = true;
  }
  if (out.run.compiles == 0 && out.run.startup_ns > 0) out.run.still_compiling = false;
  out.run.no_step_yet = track.steps() == 0 && !p.host_events.empty();
  add_stalls(model, process, restarts, windows, wall, out);

  if (!all.empty()) {
    Phase train;
    train.name = "train";
    train.steps = all.size();
    train.total_ns = std::accumulate(all.begin(), all.end(), int64_t{0});
    train.mean_step_ns = train.total_ns / static_cast<Ns>(all.size());
    out.phases.push_back(train);
  }
  if (!track.evaluation.empty()) {
    Phase evaluation;
    evaluation.name = "evaluation";
    evaluation.steps = track.evaluation_batches;
    for (const model::Stretch& pass : track.evaluation) {
      evaluation.total_ns += pass.end_ns - pass.begin_ns;
    }
    if (evaluation.steps > 0) {
      evaluation.mean_step_ns = evaluation.total_ns / static_cast<Ns>(evaluation.steps);
    }
    out.phases.push_back(evaluation);
  }
  return out;
}

}  // namespace idlescope::diagnose
