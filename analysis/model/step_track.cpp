#include "analysis/model/step_track.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/model/macro_steps.h"

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
  uint32_t iterator;
  Ns closed_ns = 0;  // next() found nothing more; 0: unknown
};

// Epochs of the process's iterators. Where marks exist, a pass without any trains nothing.
std::vector<Pass> find_passes(const read::Recording& recording, const LoaderHistory& loader,
                              uint32_t process, const std::vector<Ns>& marks) {
  std::vector<Pass> passes;
  for (const Iterator& iterator : loader.iterators) {
    if (iterator.process != process) continue;
    const Batch* previous = nullptr;
    const size_t first = passes.size();
    for (const uint32_t b : iterator.batches) {
      const Batch& batch = loader.batches[b];
      if (previous == nullptr || batch.epoch != previous->epoch) {
        passes.push_back({batch.next_begin_ns, batch.next_end_ns, 0, true, batch.iterator, 0});
      }
      passes.back().end_ns = batch.next_end_ns;
      ++passes.back().batches;
      previous = &batch;
    }
    // The last batch is worked on until next() is called in vain.
    const std::vector<read::HostEvent>& events = recording.processes[process].host_events;
    for (const uint32_t e : iterator.epoch_events) {
      if (events[e].kind != trace::EVENT_LOADER_END) continue;
      for (size_t i = passes.size(); i-- > first;) {
        if (passes[i].end_ns > events[e].begin_ns) continue;
        passes[i].closed_ns = events[e].end_ns;
        break;
      }
    }
  }
  // But no longer than until another loader is asked: an iterator may be closed late.
  std::vector<std::pair<Ns, uint32_t>> asked;
  for (const Iterator& iterator : loader.iterators) {
    if (iterator.process != process) continue;
    for (const uint32_t b : iterator.batches) {
      asked.push_back({loader.batches[b].next_begin_ns, loader.batches[b].iterator});
    }
  }
  std::sort(asked.begin(), asked.end());
  for (Pass& pass : passes) {
    if (pass.closed_ns <= pass.end_ns) continue;
    auto it = std::lower_bound(asked.begin(), asked.end(), std::make_pair(pass.end_ns, 0u));
    while (it != asked.end() && it->second == pass.iterator) ++it;
    pass.end_ns = it == asked.end() ? pass.closed_ns : std::min(pass.closed_ns, it->first);
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

// Iterators of one DataLoader: a loader whose workers do not persist makes one per epoch.
using LoaderKey = std::tuple<uint32_t, uint32_t, uint32_t, int64_t, int64_t>;

LoaderKey key_of(const Iterator& iterator) {
  return {iterator.site, iterator.inner_site, iterator.dataset, iterator.num_workers,
          iterator.batch_size};
}

// Without marks: a pass in which no weights change trains nothing. Updates are seen in parts
// of the run only, so a loader that trains in one pass is believed to train in short others.
void judge_by_updates(const LoaderHistory& loader, const WeightUpdates& updates,
                      std::vector<Pass>& passes) {
  constexpr size_t kSurely = 8;  // batches, more than one step accumulates as a rule
  struct Seen {
    bool trains = false;
    bool evaluates = false;
  };
  std::map<LoaderKey, Seen> loaders;
  std::vector<bool> without(passes.size(), false);
  for (size_t i = 0; i < passes.size(); ++i) {
    const Pass& pass = passes[i];
    Seen& seen = loaders[key_of(loader.iterators[pass.iterator])];
    if (count_between(updates.times_ns, pass.begin_ns, pass.end_ns) > 0) {
      seen.trains = true;
    } else if (pass.batches >= 2 && updates.seen_in(pass.begin_ns, pass.end_ns)) {
      seen.evaluates = true;
      without[i] = true;
    }
  }
  for (size_t i = 0; i < passes.size(); ++i) {
    const Seen& seen = loaders[key_of(loader.iterators[passes[i].iterator])];
    if (count_between(updates.times_ns, passes[i].begin_ns, passes[i].end_ns) > 0) continue;
    passes[i].trains =
        seen.trains ? !(without[i] && passes[i].batches >= kSurely) : !seen.evaluates;
  }
  // All evaluation: then it is inference, and its batches are the steps.
  if (std::none_of(passes.begin(), passes.end(), [](const Pass& pass) { return pass.trains; })) {
    for (Pass& pass : passes) pass.trains = true;
  }
}

}  // namespace

bool StepTrack::in_evaluation(Ns begin_ns, Ns end_ns) const {
  const auto it = std::partition_point(evaluation.begin(), evaluation.end(),
                                       [&](const auto& s) { return s.end_ns <= begin_ns; });
  return it != evaluation.end() && it->begin_ns < end_ns;
}

StepTrack find_step_track(const read::Recording& recording, const LoaderHistory& loader,
                          uint32_t process, const WeightUpdates& updates) {
  StepTrack track;
  const std::vector<Ns> marks = choose_marks(collect_marks(recording.processes[process]));
  std::vector<Pass> passes = find_passes(recording, loader, process, marks);
  if (marks.size() < 2 && !updates.times_ns.empty()) judge_by_updates(loader, updates, passes);

  std::vector<MicroStep> micro;
  for (const Iterator& iterator : loader.iterators) {
    if (iterator.process != process) continue;
    for (const uint32_t b : iterator.batches) {
      const Ns at = loader.batches[b].next_begin_ns;
      const bool trains = std::none_of(passes.begin(), passes.end(), [&](const Pass& pass) {
        return !pass.trains && pass.begin_ns <= at && at < pass.end_ns;
      });
      if (trains) micro.push_back({at, loader.batches[b].index});
    }
  }
  std::sort(micro.begin(), micro.end(),
            [](const MicroStep& a, const MicroStep& b) { return a.begin_ns < b.begin_ns; });
  micro.erase(
      std::unique(micro.begin(), micro.end(),
                  [](const MicroStep& a, const MicroStep& b) { return a.begin_ns == b.begin_ns; }),
      micro.end());
  std::vector<Ns> training_next;
  for (const MicroStep& step : micro) training_next.push_back(step.begin_ns);

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
    MacroSteps steps = group_micro_steps(micro, updates);
    track.anchor = "loader";
    track.boundaries = std::move(steps.boundaries);
    track.micro_steps = steps.micro_steps;
    track.confidence = steps.agrees ? 1 : 0.9;  // named records; do the updates agree?
  }
  return track;
}

}  // namespace idlescope::model
