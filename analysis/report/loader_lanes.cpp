#include "analysis/report/loader_lanes.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace idlescope::report {
namespace {

constexpr size_t kBatches = 10;
constexpr size_t kMostWorkers = 16;

using read::HostEvent;

// Ten consecutive deliveries from the middle of the longest iterator: past the start.
std::vector<const HostEvent*> ten_batches(const read::Process& process) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const HostEvent*>> by_epoch;
  for (const HostEvent& event : process.host_events) {
    if (event.kind == trace::EVENT_LOADER_NEXT)
      by_epoch[{event.iterator, event.epoch}].push_back(&event);
  }
  std::vector<const HostEvent*>* longest = nullptr;
  for (auto& [key, events] : by_epoch) {
    if (!longest || events.size() > longest->size()) longest = &events;
  }
  if (!longest || longest->size() < 3) return {};
  std::sort(longest->begin(), longest->end(),
            [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
  const size_t count = std::min(kBatches, longest->size() - 1);
  const size_t first = (longest->size() - count) / 2;
  return {longest->begin() + static_cast<std::ptrdiff_t>(first),
          longest->begin() + static_cast<std::ptrdiff_t>(first + count)};
}

class Lanes {
 public:
  Lanes(int64_t begin_ns, int64_t end_ns, TypicalStep* step)
      : begin_(begin_ns), end_(end_ns), step_(step) {}

  void bar(const std::string& lane, const char* group, int64_t begin, int64_t end,
           const char* label, int64_t batch, Leaf leaf = LEAF_UNSPECIFIED, double value = 0) {
    if (end <= begin_ || begin >= end_) return;
    Lane*& entry = lanes_[lane];
    if (!entry) {
      entry = step_->add_lane();
      entry->set_name(lane);
      entry->set_group(group);
    }
    Bar* bar = entry->add_bar();
    bar->set_begin_ns(std::max(begin, begin_));
    bar->set_end_ns(std::min(end, end_));
    bar->set_label(label);
    bar->set_leaf(leaf);
    bar->set_batch(batch);
    bar->set_gap_index(-1);
    bar->set_value(value);
  }

 private:
  int64_t begin_;
  int64_t end_;
  TypicalStep* step_;
  std::map<std::string, Lane*> lanes_;
};

// Fetch and, at its end, the part spent in collate_fn.
void fetch_bars(const HostEvent& event, const std::string& lane, const char* group, Lanes* lanes) {
  const int64_t collate = std::clamp<int64_t>(event.b, 0, event.end_ns - event.begin_ns);
  lanes->bar(lane, group, event.begin_ns, event.end_ns - collate, "fetch", event.batch, DATA_CPU);
  if (collate > 0) {
    lanes->bar(lane, group, event.end_ns - collate, event.end_ns, "collate", event.batch,
               DATA_COLLATE);
  }
}

}  // namespace

void add_loader_lanes(const Context& context, Report* report) {
  if (context.d.chosen_process >= context.recording.processes.size()) return;
  const read::Process& main = context.recording.processes[context.d.chosen_process];
  const std::vector<const HostEvent*> batches = ten_batches(main);
  if (batches.empty()) return;
  TypicalStep step;
  step.set_which("loader");
  step.set_begin_ns(batches.front()->begin_ns);
  step.set_end_ns(batches.back()->end_ns);
  if (step.end_ns() <= step.begin_ns()) return;
  Lanes lanes(step.begin_ns(), step.end_ns(), &step);

  size_t workers = 0;
  for (const read::Process& process : context.recording.processes) {
    if (process.header.process().role() != trace::Process::ROLE_LOADER_WORKER) continue;
    if (process.header.process().parent_pid() != 0 && main.header.process().pid() != 0 &&
        process.header.process().parent_pid() != main.header.process().pid()) {
      continue;  // of another rank
    }
    if (process.last_ns < step.begin_ns() || process.first_ns > step.end_ns()) continue;
    if (++workers > kMostWorkers) break;
    std::string lane;
    for (const HostEvent& event : process.host_events) {
      if (event.kind == trace::EVENT_WORKER_LOOP && event.a >= 0)
        lane = "worker " + std::to_string(event.a);
      if (event.kind == trace::EVENT_WORKER_FETCH && event.c >= 0)
        lane = "worker " + std::to_string(event.c);
      if (!lane.empty()) break;
    }
    if (lane.empty()) lane = "worker pid " + std::to_string(process.header.process().pid());
    for (const HostEvent& event : process.host_events) {
      if (event.kind == trace::EVENT_WORKER_FETCH) fetch_bars(event, lane, "worker", &lanes);
      if (event.kind == trace::EVENT_WORKER_PICKLE) {
        lanes.bar(lane, "worker", event.begin_ns, event.end_ns, "hand over", event.batch, DATA_IPC);
      }
    }
  }
  std::vector<std::pair<int64_t, int64_t>> ready;  // time, batches ready
  for (const HostEvent& event : main.host_events) {
    switch (event.kind) {
      case trace::EVENT_WORKER_FETCH:  // thread workers, or no workers at all
        if (event.c >= 0) {
          fetch_bars(event, "worker " + std::to_string(event.c), "worker", &lanes);
        } else {
          fetch_bars(event, "main: fetch", "worker", &lanes);
        }
        break;
      case trace::EVENT_PIN_COPY:
        lanes.bar("pin thread", "pin", event.begin_ns, event.end_ns, "pin", event.batch, DATA_PIN);
        break;
      default:
        break;
    }
  }
  for (const HostEvent& event : main.host_events) {
    if (event.kind != trace::EVENT_LOADER_NEXT) continue;
    lanes.bar("main thread", "host", event.begin_ns, event.end_ns, "next()", event.batch);
    if (event.a >= 0) ready.emplace_back(event.begin_ns, event.a);
  }
  std::sort(ready.begin(), ready.end());
  for (size_t i = 0; i + 1 < ready.size(); ++i) {
    lanes.bar("batches ready", "queue", ready[i].first, ready[i + 1].first, "", -1,
              LEAF_UNSPECIFIED, static_cast<double>(ready[i].second));
  }
  if (step.lane_size() > 0) *report->add_timelines() = std::move(step);
}

}  // namespace idlescope::report
