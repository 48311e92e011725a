#include "analysis/model/loader_history.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <unordered_map>

namespace idlescope::model {
namespace {

struct BatchKey {
  uint32_t iterator;
  uint32_t epoch;
  int64_t index;
  bool operator==(const BatchKey&) const = default;
};

struct BatchKeyHash {
  size_t operator()(const BatchKey& key) const {
    uint64_t h = key.iterator * 0x9E3779B97F4A7C15ull;
    h ^= (key.epoch + 0x7F4A7C15ull) * 0xC2B2AE3D27D4EB4Full;
    h ^= static_cast<uint64_t>(key.index) * 0x165667B19E3779F9ull;
    return static_cast<size_t>(h ^ (h >> 29));
  }
};

}  // namespace

Ns Batch::blocked_ns() const {
  if (!counted()) return 0;
  const Ns wall = fetch_end_ns - fetch_begin_ns;
  return std::max<Ns>(0, wall - cpu_ns - std::max<Ns>(0, run_queue_ns));
}

bool Batch::blocked_on_storage() const { return blocks_read > 0 || major_faults > 0; }

uint32_t LoaderHistory::batch_of(uint32_t process, uint32_t event) const {
  const auto it = std::lower_bound(
      by_event_.begin(), by_event_.end(), std::make_pair(process, event),
      [](const Key& key, const std::pair<uint32_t, uint32_t>& wanted) {
        return std::tie(key.process, key.event) < std::tie(wanted.first, wanted.second);
      });
  if (it == by_event_.end() || it->process != process || it->event != event) return kNone;
  return it->batch;
}

// Works through the processes twice: first the consumers (next(), workers started), then
// the producers, whose batches need the consumers' iterators.
class LoaderBuilder {
 public:
  LoaderBuilder(const read::Recording& recording, LoaderHistory& out)
      : recording_(recording), out_(out) {}

  void run() {
    for (uint32_t p = 0; p < recording_.processes.size(); ++p) read_consumer(p);
    for (uint32_t p = 0; p < recording_.processes.size(); ++p) read_workers_started(p);
    for (uint32_t p = 0; p < recording_.processes.size(); ++p) read_producers(p);
    for (uint32_t p = 0; p < recording_.processes.size(); ++p) read_pin_threads(p);
    finish();
  }

 private:
  uint32_t iterator_of(uint32_t process, uint32_t id) {
    const auto [it, is_new] =
        iterators_.try_emplace({process, id}, static_cast<uint32_t>(out_.iterators.size()));
    if (is_new) {
      Iterator& iterator = out_.iterators.emplace_back();
      iterator.id = id;
      iterator.process = process;
    }
    return it->second;
  }

  uint32_t batch_of(uint32_t iterator, uint32_t epoch, int64_t index) {
    const auto [it, is_new] =
        batches_.try_emplace({iterator, epoch, index}, static_cast<uint32_t>(out_.batches.size()));
    if (is_new) {
      Batch& batch = out_.batches.emplace_back();
      batch.iterator = iterator;
      batch.epoch = epoch;
      batch.index = index;
    }
    return it->second;
  }

  void read_consumer(uint32_t p) {
    const read::Process& process = recording_.processes[p];
    for (uint32_t i = 0; i < process.host_events.size(); ++i) {
      const read::HostEvent& event = process.host_events[i];
      switch (event.kind) {
        case trace::EVENT_LOADER_CREATE: {
          const uint32_t index = iterator_of(p, event.iterator);
          Iterator& iterator = out_.iterators[index];
          iterator.create_begin_ns = event.begin_ns;
          iterator.create_end_ns = event.end_ns;
          iterator.num_workers = event.a;
          iterator.prefetch = event.b;
          iterator.flags = event.c;
          iterator.epoch_events.push_back(i);
          break;
        }
        case trace::EVENT_LOADER_RESET:
        case trace::EVENT_LOADER_END:
        case trace::EVENT_LOADER_SHUTDOWN:
          out_.iterators[iterator_of(p, event.iterator)].epoch_events.push_back(i);
          break;
        case trace::EVENT_LOADER_SITE: {
          Iterator& iterator = out_.iterators[iterator_of(p, event.iterator)];
          if (event.a > 0) iterator.site = static_cast<uint32_t>(event.a);
          if (event.b > 0) iterator.inner_site = static_cast<uint32_t>(event.b);
          if (event.c > 0) iterator.batch_size = event.c;
          break;
        }
        case trace::EVENT_LOADER_UNSEEN:
          out_.iterators[iterator_of(p, event.iterator)].by_name_only = true;
          if (event.a > 0) out_.unseen.push_back(static_cast<uint32_t>(event.a));
          break;
        case trace::EVENT_LOADER_NEXT: {
          const uint32_t iterator = iterator_of(p, event.iterator);
          // An importer does not know the index: number the calls.
          const int64_t index = event.batch >= 0
                                    ? event.batch
                                    : static_cast<int64_t>(out_.iterators[iterator].batches.size());
          const uint32_t b = batch_of(iterator, event.epoch, index);
          Batch& batch = out_.batches[b];
          batch.next_event = i;
          batch.next_begin_ns = event.begin_ns;
          batch.next_end_ns = event.end_ns;
          batch.ready = event.a;
          out_.iterators[iterator].batches.push_back(b);
          out_.by_event_.push_back({p, i, b});
          break;
        }
        default:
          break;
      }
    }
  }

  void read_workers_started(uint32_t p) {
    const read::Process& process = recording_.processes[p];
    for (const read::HostEvent& event : process.host_events) {
      if (event.kind != trace::EVENT_LOADER_WORKER_STARTED) continue;
      Iterator& iterator = out_.iterators[iterator_of(p, event.iterator)];
      Worker& worker = iterator.workers.emplace_back();
      worker.number = static_cast<int32_t>(event.a);
      worker.id = event.b;
      worker.started_ns = event.begin_ns;
      worker.process = process_of_worker(process, event);
      if (worker.process != kNone) out_.worker_processes.push_back(worker.process);
      workers_[{worker.process != kNone ? worker.process : p, worker.id}].push_back(
          {iterator_of(p, event.iterator), static_cast<uint32_t>(iterator.workers.size() - 1)});
    }
  }

  // The file of that pid on the same host whose life fits: pids are used again.
  uint32_t process_of_worker(const read::Process& parent, const read::HostEvent& started) const {
    uint32_t best = kNone;
    Ns best_distance = 0;
    for (uint32_t i = 0; i < recording_.processes.size(); ++i) {
      const read::Process& process = recording_.processes[i];
      const trace::Process& identity = process.header.process();
      if (&process == &parent || identity.pid() != started.b ||
          identity.host() != parent.header.process().host()) {
        continue;
      }
      const Ns seen = identity.start_ns() != 0 ? identity.start_ns() : process.first_ns;
      const Ns distance = std::abs(seen - started.begin_ns);
      if (best == kNone || distance < best_distance) {
        best = i;
        best_distance = distance;
      }
    }
    return best;
  }

  // The worker that events of (process, id) belong to: the one started last before them.
  std::pair<uint32_t, uint32_t> worker_at(uint32_t process, int64_t id, Ns time_ns) const {
    const auto it = workers_.find({process, id});
    if (it == workers_.end()) return {kNone, kNone};
    std::pair<uint32_t, uint32_t> best = it->second.front();
    for (const auto& candidate : it->second) {
      if (worker(candidate).started_ns <= time_ns) best = candidate;
    }
    return best;
  }

  const Worker& worker(std::pair<uint32_t, uint32_t> at) const {
    return out_.iterators[at.first].workers[at.second];
  }
  Worker& worker(std::pair<uint32_t, uint32_t> at) {
    return out_.iterators[at.first].workers[at.second];
  }

  void read_producers(uint32_t p) {
    const read::Process& process = recording_.processes[p];
    const int64_t pid = process.header.process().pid();
    std::vector<const read::HostEvent*> pickles;
    uint32_t current_thread = 0;
    uint32_t last_batch = kNone;  // of the FETCH before on this thread
    std::map<std::pair<uint32_t, uint32_t>, std::pair<int64_t, uint32_t>> progress;
    for (uint32_t i = 0; i < process.host_events.size(); ++i) {
      const read::HostEvent& event = process.host_events[i];
      if (event.thread_id != current_thread) {
        current_thread = event.thread_id;
        last_batch = kNone;
      }
      switch (event.kind) {
        case trace::EVENT_WORKER_LOOP: {
          const auto at = find_worker(p, pid, event);
          if (at.first != kNone) {
            worker(at).loop_begin_ns = event.begin_ns;
            worker(at).last_ns = std::max(worker(at).last_ns, event.end_ns);
          }
          break;
        }
        case trace::EVENT_WORKER_EMPTY: {
          const auto at = find_worker(p, pid, event);
          if (at.first != kNone) worker(at).empty = true;
          break;
        }
        case trace::EVENT_WORKER_DATASET: {
          const auto at = find_worker(p, pid, event);
          uint32_t iterator = at.first;
          if (iterator == kNone && event.iterator != 0) iterator = iterator_of(p, event.iterator);
          if (iterator != kNone && event.b > 0) {
            out_.iterators[iterator].dataset = static_cast<uint32_t>(event.b);
          }
          break;
        }
        case trace::EVENT_WORKER_FETCH: {
          last_batch = kNone;
          const auto at = find_worker(p, pid, event);
          if (at.first != kNone) {
            auto& [previous, epoch] = progress[at];
            if (!worker(at).batches.empty() && event.batch <= previous) ++epoch;
            previous = event.batch;
            last_batch = batch_of(at.first, std::max(epoch, event.epoch), event.batch);
            out_.batches[last_batch].worker = at.second;
            worker(at).batches.push_back(last_batch);
            worker(at).last_ns = std::max(worker(at).last_ns, event.end_ns);
          } else {
            last_batch = inline_batch(p, event);
          }
          if (last_batch == kNone) break;
          Batch& batch = out_.batches[last_batch];
          batch.fetch_begin_ns = event.begin_ns;
          batch.fetch_end_ns = event.end_ns;
          batch.samples = event.a;
          batch.collate_ns = event.b;
          break;
        }
        case trace::EVENT_WORKER_FETCH_CPU: {
          const uint32_t b = same_span(last_batch, event);
          if (b == kNone) break;
          out_.batches[b].cpu_ns = event.a;
          out_.batches[b].process_cpu_ns = event.b;
          out_.batches[b].run_queue_ns = event.c;
          break;
        }
        case trace::EVENT_WORKER_FETCH_IO: {
          const uint32_t b = same_span(last_batch, event);
          if (b == kNone) break;
          out_.batches[b].major_faults = event.a;
          out_.batches[b].blocks_read = event.b;
          out_.batches[b].bytes_read = event.c;
          break;
        }
        case trace::EVENT_WORKER_PUT:
          if (last_batch != kNone &&
              (event.batch < 0 || out_.batches[last_batch].index == event.batch)) {
            out_.batches[last_batch].put_end_ns = event.end_ns;
          }
          break;
        case trace::EVENT_WORKER_PICKLE:
          pickles.push_back(&event);
          break;
        default:
          break;
      }
    }
    assign_pickles(p, pid, pickles);
  }

  // Counters follow their FETCH with the same span; sorting by (begin, end) may put them
  // before it, so the span decides, not the place.
  uint32_t same_span(uint32_t last_batch, const read::HostEvent& event) const {
    if (last_batch == kNone) return kNone;
    const Batch& batch = out_.batches[last_batch];
    const bool same = batch.fetch_begin_ns == event.begin_ns && batch.fetch_end_ns == event.end_ns;
    return same || batch.index == event.batch ? last_batch : kNone;
  }

  std::pair<uint32_t, uint32_t> find_worker(uint32_t p, int64_t pid,
                                            const read::HostEvent& event) const {
    const auto by_pid = worker_at(p, pid, event.begin_ns);
    if (by_pid.first != kNone) return by_pid;
    return worker_at(p, event.thread_id, event.begin_ns);
  }

  // num_workers = 0: the fetch lies inside a next() of the same thread.
  uint32_t inline_batch(uint32_t p, const read::HostEvent& event) {
    if (event.iterator != 0) {
      const auto it = iterators_.find({p, event.iterator});
      if (it != iterators_.end()) return batch_of(it->second, event.epoch, event.batch);
    }
    if (inline_process_ != p) index_inline(p);
    auto it = std::partition_point(inline_.begin(), inline_.end(), [&](uint32_t b) {
      return out_.batches[b].next_begin_ns <= event.begin_ns;
    });
    if (it == inline_.begin()) return kNone;
    const uint32_t b = *(it - 1);
    return out_.batches[b].next_end_ns >= event.end_ns ? b : kNone;
  }

  void index_inline(uint32_t p) {
    inline_process_ = p;
    inline_.clear();
    for (uint32_t b = 0; b < out_.batches.size(); ++b) {
      const Batch& batch = out_.batches[b];
      if (batch.next_event != kNone && out_.iterators[batch.iterator].process == p) {
        inline_.push_back(b);
      }
    }
    std::sort(inline_.begin(), inline_.end(), [&](uint32_t x, uint32_t y) {
      return out_.batches[x].next_begin_ns < out_.batches[y].next_begin_ns;
    });
  }

  // The feeder thread pickles in the order of put(): batch k of a worker is its k-th
  // pickle; the recorded index wins.
  void assign_pickles(uint32_t p, int64_t pid, const std::vector<const read::HostEvent*>& pickles) {
    std::map<std::pair<uint32_t, uint32_t>, size_t> next;
    std::vector<const read::HostEvent*> ordered = pickles;
    std::sort(ordered.begin(), ordered.end(),
              [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
    for (const read::HostEvent* event : ordered) {
      const auto at = find_worker(p, pid, *event);
      if (at.first == kNone) continue;
      const std::vector<uint32_t>& list = worker(at).batches;
      size_t& position = next[at];
      // Skip batches that were fetched later than this pickle began, or have another index.
      size_t i = position;
      if (event->batch >= 0) {
        while (i < list.size() && out_.batches[list[i]].index != event->batch) ++i;
      }
      if (i >= list.size() || out_.batches[list[i]].fetch_begin_ns > event->end_ns) continue;
      Batch& batch = out_.batches[list[i]];
      batch.pickle_begin_ns = event->begin_ns;
      batch.pickle_end_ns = event->end_ns;
      position = i + 1;
    }
  }

  void read_pin_threads(uint32_t p) {
    const read::Process& process = recording_.processes[p];
    for (const read::HostEvent& event : process.host_events) {
      if (event.kind != trace::EVENT_PIN_COPY && event.kind != trace::EVENT_PIN_PUT &&
          event.kind != trace::EVENT_LOADER_PIN_INLINE) {
        continue;
      }
      const uint32_t b = pinned_batch(p, event);
      if (b == kNone) continue;
      Batch& batch = out_.batches[b];
      if (event.kind == trace::EVENT_PIN_PUT) {
        batch.pin_put_end_ns = event.end_ns;
      } else {
        batch.pin_begin_ns = event.begin_ns;
        batch.pin_end_ns = event.end_ns;
      }
    }
  }

  // A pin event names the index, perhaps not the iterator or epoch: then it is the batch of
  // that index which is delivered next after it.
  uint32_t pinned_batch(uint32_t p, const read::HostEvent& event) {
    if (event.batch < 0) return kNone;
    if (by_index_process_ != p) {
      by_index_process_ = p;
      by_index_.clear();
      for (uint32_t b = 0; b < out_.batches.size(); ++b) {
        if (out_.iterators[out_.batches[b].iterator].process == p) {
          by_index_[out_.batches[b].index].push_back(b);
        }
      }
    }
    const auto it = by_index_.find(event.batch);
    if (it == by_index_.end()) return kNone;
    uint32_t best = kNone;
    for (const uint32_t b : it->second) {
      const Batch& batch = out_.batches[b];
      if (event.iterator != 0 && out_.iterators[batch.iterator].id != event.iterator) continue;
      if (batch.next_end_ns != 0 && batch.next_end_ns < event.begin_ns) continue;
      if (batch.fetch_begin_ns > event.end_ns) continue;
      const auto time = [&](uint32_t x) {
        return out_.batches[x].next_end_ns != 0 ? out_.batches[x].next_end_ns : INT64_MAX;
      };
      if (best == kNone || time(b) < time(best)) best = b;
    }
    return best;
  }

  void finish() {
    std::sort(out_.by_event_.begin(), out_.by_event_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.process, a.event) < std::tie(b.process, b.event);
    });
    for (Iterator& iterator : out_.iterators) {
      std::sort(iterator.batches.begin(), iterator.batches.end(), [&](uint32_t a, uint32_t b) {
        const Batch& x = out_.batches[a];
        const Batch& y = out_.batches[b];
        return std::tie(x.next_begin_ns, x.index) < std::tie(y.next_begin_ns, y.index);
      });
      for (Worker& worker : iterator.workers) {
        std::sort(worker.batches.begin(), worker.batches.end(), [&](uint32_t a, uint32_t b) {
          return out_.batches[a].fetch_begin_ns < out_.batches[b].fetch_begin_ns;
        });
      }
    }
    std::sort(out_.unseen.begin(), out_.unseen.end());
    out_.unseen.erase(std::unique(out_.unseen.begin(), out_.unseen.end()), out_.unseen.end());
    std::sort(out_.worker_processes.begin(), out_.worker_processes.end());
  }

  const read::Recording& recording_;
  LoaderHistory& out_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> iterators_;  // (process, id)
  std::unordered_map<BatchKey, uint32_t, BatchKeyHash> batches_;
  // (process of the events, pid or thread id) → (iterator, worker), in order of start.
  std::map<std::pair<uint32_t, int64_t>, std::vector<std::pair<uint32_t, uint32_t>>> workers_;
  uint32_t inline_process_ = kNone;
  std::vector<uint32_t> inline_;  // delivered batches of inline_process_, by next_begin
  uint32_t by_index_process_ = kNone;
  std::unordered_map<int64_t, std::vector<uint32_t>> by_index_;
};

LoaderHistory build_loader_history(const read::Recording& recording) {
  LoaderHistory history;
  LoaderBuilder(recording, history).run();
  return history;
}

}  // namespace idlescope::model
