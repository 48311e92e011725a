#include "analysis/model/step_track.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace idlescope::model {
namespace {

struct Mark {
  Ns time_ns;
  int64_t source;
  int64_t label;
};

// Lower is better. The user's word beats a tool's, a tool's beats a hook's.
int preference(int64_t source) {
  switch (source) {
    case trace::STEP_SOURCE_API:
      return 0;
    case trace::STEP_SOURCE_PROFILER:
      return 1;
    case trace::STEP_SOURCE_NVTX:
      return 2;
    case trace::STEP_SOURCE_OPTIMIZER:
      return 3;
    default:
      return 4;
  }
}

std::vector<Mark> collect_marks(const read::Process& process) {
  std::vector<Mark> marks;
  for (const read::HostEvent& event : process.host_events) {
    if (event.kind == trace::EVENT_STEP) marks.push_back({event.begin_ns, event.a, event.c});
  }
  std::sort(marks.begin(), marks.end(),
            [](const Mark& a, const Mark& b) { return a.time_ns < b.time_ns; });
  return marks;
}

// Marks of the best source. Several optimizers in turn (GAN, one per parameter group) are
// one round: the label that closes the round, that is the one seen last, marks the step.
std::vector<Ns> choose_marks(const std::vector<Mark>& all) {
  std::map<int, size_t> by_preference;
  for (const Mark& mark : all) ++by_preference[preference(mark.source)];
  int chosen = -1;
  for (const auto& [rank, count] : by_preference) {
    if (count >= 2) {
      chosen = rank;
      break;
    }
  }
  std::map<int64_t, size_t> labels;
  for (const Mark& mark : all) {
    if (preference(mark.source) == chosen) ++labels[mark.label];
  }
  int64_t only_label = -1;
  if (labels.size() > 1 && chosen == 3) {
    size_t most = 0;
    for (const auto& [label, count] : labels) most = std::max(most, count);
    for (auto it = all.rbegin(); it != all.rend() && only_label < 0; ++it) {
      if (preference(it->source) == chosen && labels[it->label] * 2 > most) only_label = it->label;
    }
  }
  std::vector<Ns> times;
  for (const Mark& mark : all) {
    if (preference(mark.source) != chosen) continue;
    if (only_label >= 0 && mark.label != only_label) continue;
    if (times.empty() || mark.time_ns > times.back()) times.push_back(mark.time_ns);
  }
  return times;
}

size_t count_between(const std::vector<Ns>& sorted, Ns begin_ns, Ns end_ns) {
  return static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), end_ns) -
                             std::lower_bound(sorted.begin(), sorted.end(), begin_ns));
}

struct Pass {  // one epoch of one iterator
  Ns begin_ns;
  Ns end_ns;
  size_t batches;
  bool trains;
};

// Epochs of the process's iterators. Where marks exist, a pass without any trains nothing.
std::vector<Pass> find_passes(const LoaderHistory& loader, uint32_t process,
                              const std::vector<Ns>& marks) {
  std::vector<Pass> passes;
  for (const Iterator& iterator : loader.iterators) {
    if (iterator.process != process) continue;
    const Batch* previous = nullptr;
    for (const uint32_t b : iterator.batches) {
      const Batch& batch = loader.batches[b];
      if (previous == nullptr || batch.epoch != previous->epoch) {
        passes.push_back({batch.next_begin_ns, batch.next_end_ns, 0, true});
      }
      passes.back().end_ns = batch.next_end_ns;
      ++passes.back().batches;
      previous = &batch;
    }
  }
  for (Pass& pass : passes) {
    // A pass of a few batches may lie between two marks by chance.
    if (marks.size() >= 2 && pass.batches >= 2) {
      pass.trains = count_between(marks, pass.begin_ns, pass.end_ns) > 0;
    }
  }
  std::sort(passes.begin(), passes.end(),
            [](const Pass& a, const Pass& b) { return a.begin_ns < b.begin_ns; });
  return passes;
}

}  // namespace

bool StepTrack::in_evaluation(Ns begin_ns, Ns end_ns) const {
  const auto it = std::partition_point(evaluation.begin(), evaluation.end(),
                                       [&](const auto& s) { return s.end_ns <= begin_ns; });
  return it != evaluation.end() && it->begin_ns < end_ns;
}

StepTrack find_step_track(const read::Recording& recording, const LoaderHistory& loader,
                          uint32_t process) {
  StepTrack track;
  const std::vector<Ns> marks = choose_marks(collect_marks(recording.processes[process]));
  const std::vector<Pass> passes = find_passes(loader, process, marks);

  std::vector<Ns> training_next;
  for (const Iterator& iterator : loader.iterators) {
    if (iterator.process != process) continue;
    for (const uint32_t b : iterator.batches) {
      const Ns at = loader.batches[b].next_begin_ns;
      const bool trains = std::none_of(passes.begin(), passes.end(), [&](const Pass& pass) {
        return !pass.trains && pass.begin_ns <= at && at < pass.end_ns;
      });
      if (trains) training_next.push_back(at);
    }
  }
  std::sort(training_next.begin(), training_next.end());
  training_next.erase(std::unique(training_next.begin(), training_next.end()), training_next.end());

  for (const Pass& pass : passes) {
    if (pass.trains) continue;
    track.evaluation_batches += pass.batches;
    if (!track.evaluation.empty() && pass.begin_ns <= track.evaluation.back().end_ns) {
      track.evaluation.back().end_ns = std::max(track.evaluation.back().end_ns, pass.end_ns);
    } else {
      track.evaluation.push_back({pass.begin_ns, pass.end_ns});
    }
  }

  if (marks.size() >= 2) {
    track.anchor = "marks";
    track.boundaries = marks;
    track.confidence = 1;
    const size_t next = count_between(training_next, marks.front(), marks.back());
    const double ratio = static_cast<double>(next) / static_cast<double>(marks.size() - 1);
    if (next > 0 && ratio > 0.45 && ratio < 0.55) {
      // Two marks a batch: one optimizer class used twice. The batch is the round.
      track.anchor = "loader";
      track.boundaries = training_next;
    } else if (ratio >= 1.5 && std::abs(ratio - std::round(ratio)) < 0.1 * ratio) {
      track.micro_steps = static_cast<uint32_t>(std::lround(ratio));
    }
  } else if (training_next.size() >= 2) {
    track.anchor = "loader";
    track.boundaries = training_next;
    track.confidence = 0.9;  // named records, but nothing that agrees with them
  }
  return track;
}

}  // namespace idlescope::model
