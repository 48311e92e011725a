#include "analysis/diagnose/loader_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/diagnose/loader_stages.h"

namespace idlescope::diagnose {
namespace {

using model::Batch;
using model::Iterator;

// Iterators of one DataLoader: each epoch of a non-persistent loader makes a new one.
using LoaderKey = std::tuple<uint32_t, uint32_t, int64_t, int64_t>;

LoaderKey key_of(const Iterator& iterator) {
  return {iterator.site, iterator.inner_site, iterator.num_workers, iterator.batch_size};
}

struct Group {
  std::vector<uint32_t> iterators;
  Ns waited_ns = 0;
};

std::map<LoaderKey, Group> group_loaders(const model::Model& model, uint32_t process) {
  std::map<LoaderKey, Group> groups;
  for (uint32_t i = 0; i < model.loader.iterators.size(); ++i) {
    const Iterator& iterator = model.loader.iterators[i];
    if (iterator.process != process) continue;
    Group& group = groups[key_of(iterator)];
    group.iterators.push_back(i);
    for (const uint32_t b : iterator.batches) {
      const Batch& batch = model.loader.batches[b];
      group.waited_ns += batch.next_end_ns - batch.next_begin_ns;
    }
  }
  return groups;
}

const Group* most_waited(const std::map<LoaderKey, Group>& groups) {
  const Group* best = nullptr;
  for (const auto& [key, group] : groups) {
    if (best == nullptr || group.waited_ns > best->waited_ns) best = &group;
  }
  return best;
}

std::string start_method(const Iterator& iterator) {
  if (iterator.has(trace::LOADER_FLAG_FORK)) return "fork";
  if (iterator.has(trace::LOADER_FLAG_SPAWN)) return "spawn";
  if (iterator.has(trace::LOADER_FLAG_FORKSERVER)) return "forkserver";
  if (iterator.has(trace::LOADER_FLAG_THREADS)) return "threads";
  return "";
}

struct Mean {
  double sum = 0;
  double squares = 0;
  double n = 0;
  void add(double value) {
    sum += value;
    squares += value * value;
    n += 1;
  }
  double value() const { return n > 0 ? sum / n : 0; }
  double cv() const {
    if (n < 2 || sum <= 0) return 0;
    const double mean = value();
    return std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean;
  }
};

void add_frames(const model::Model& model, const Group& group, LoaderSummary& out) {
  std::map<uint32_t, double> by_site;
  double total = 0;
  const auto collect = [&](const read::Process& process) {
    for (const read::HostEvent& event : process.host_events) {
      if (event.kind != trace::EVENT_WORKER_FRAME || event.a <= 0) continue;
      by_site[static_cast<uint32_t>(event.a)] += static_cast<double>(event.c);
      total += static_cast<double>(event.c);
    }
  };
  std::vector<uint32_t> processes;
  for (const uint32_t i : group.iterators) {
    processes.push_back(model.loader.iterators[i].process);
    for (const model::Worker& worker : model.loader.iterators[i].workers) {
      if (worker.process != kNone) processes.push_back(worker.process);
    }
  }
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  for (const uint32_t p : processes) collect(model.recording.processes[p]);
  for (const auto& [site, ns] : by_site) {
    out.frames.push_back({model.recording.strings[site], total > 0 ? ns / total : 0});
  }
  std::stable_sort(out.frames.begin(), out.frames.end(),
                   [](const HotFrame& a, const HotFrame& b) { return a.share > b.share; });
  if (out.frames.size() > 10) out.frames.resize(10);
}

Ns clipped(Ns begin_ns, Ns end_ns, Ns from_ns, Ns to_ns) {
  return std::max<Ns>(0, std::min(end_ns, to_ns) - std::max(begin_ns, from_ns));
}

}  // namespace

namespace {

// A window is hardly longer than the time between two samples (a second): the one before it and
// the one behind it count.
constexpr Ns kSampledEvery = 1'200'000'000;

// Growth of a counter of CPU time in CPUs; -1: fewer than two samples.
double cpus_of(const read::Process& process, trace::CounterKind kind, Ns from_ns, Ns to_ns) {
  const read::Counter* first = nullptr;
  const read::Counter* last = nullptr;
  for (const read::Counter& counter : process.counters) {
    if (counter.kind != kind || counter.time_ns < from_ns || counter.time_ns > to_ns) continue;
    if (first == nullptr || counter.time_ns < first->time_ns) first = &counter;
    if (last == nullptr || counter.time_ns > last->time_ns) last = &counter;
  }
  if (first == nullptr || last->time_ns <= first->time_ns) return -1;
  // As doubles: a file may hold any two numbers, and their difference need not be one.
  return (static_cast<double>(last->value) - static_cast<double>(first->value)) /
         static_cast<double>(last->time_ns - first->time_ns);
}

}  // namespace

double cores_in_use(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns) {
  for (const trace::CounterKind kind :
       {trace::COUNTER_CGROUP_CPU_NS, trace::COUNTER_TREE_CPU_NS, trace::COUNTER_PROCESS_CPU_NS}) {
    const double cpus = cpus_of(model.recording.processes[process], kind, from_ns, to_ns);
    if (cpus >= 0) return cpus;
  }
  return 0;
}

double process_cpus(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns) {
  return cpus_of(model.recording.processes[process], trace::COUNTER_PROCESS_CPU_NS,
                 from_ns - kSampledEvery, to_ns + kSampledEvery);
}

double free_cores(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns) {
  const read::Process& recorded = model.recording.processes[process];
  from_ns -= kSampledEvery;
  to_ns += kSampledEvery;
  const double usable = recorded.header.process().cpu_count();
  const double all = cpus_of(recorded, trace::COUNTER_SYSTEM_CPU_BUSY_NS, from_ns, to_ns);
  if (usable <= 0 || all < 0) return -1;
  // Others may run on CPUs that this job may not use: then fewer look free than are.
  return std::max(0.0, usable - std::max(all, cores_in_use(model, process, from_ns, to_ns)));
}

LoaderSummary summarize_loader(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns) {
  LoaderSummary out;
  for (const uint32_t name : model.loader.unseen) {
    out.unseen.push_back(model.recording.strings[name]);
  }
  const std::map<LoaderKey, Group> groups = group_loaders(model, process);
  out.loaders = static_cast<uint32_t>(groups.size());
  const Group* group = most_waited(groups);
  if (group == nullptr) return out;
  out.seen = true;
  const read::Strings& strings = model.recording.strings;
  const LoaderStages stages(model.loader);

  Mean fetch, collate, pickle, unpickle, pin, next, ready, bytes, samples;
  double cpu = 0, run_queue = 0, blocked = 0, storage = 0, counted = 0;
  double busy = 0, capacity = 0, pin_busy = 0, active = 0, feeder_busy = 0;
  uint64_t waits = 0, out_of_turn = 0;
  for (const uint32_t i : group->iterators) {
    const Iterator& iterator = model.loader.iterators[i];
    out.num_workers = static_cast<int32_t>(iterator.num_workers);
    out.prefetch_factor = static_cast<int32_t>(iterator.prefetch);
    out.pin_memory = out.pin_memory || iterator.has(trace::LOADER_FLAG_PIN_MEMORY);
    out.persistent_workers = out.persistent_workers || iterator.has(trace::LOADER_FLAG_PERSISTENT);
    out.iterable = out.iterable || iterator.has(trace::LOADER_FLAG_ITERABLE);
    out.out_of_order = out.out_of_order || iterator.has(trace::LOADER_FLAG_OUT_OF_ORDER);
    out.thread_workers = out.thread_workers || iterator.has(trace::LOADER_FLAG_THREADS);
    if (out.start_method.empty()) out.start_method = start_method(iterator);
    if (iterator.site != 0) out.site = strings[iterator.site];
    if (iterator.inner_site != 0 && iterator.inner_site != iterator.site) {
      out.inner_site = strings[iterator.inner_site];
    }
    if (iterator.dataset != 0) out.dataset = strings[iterator.dataset];
    if (iterator.batch_size > 0) out.batch_size = iterator.batch_size;

    Ns first = INT64_MAX, last = INT64_MIN;
    for (const uint32_t b : iterator.batches) {
      const Batch& batch = model.loader.batches[b];
      ++out.delivered;
      if (batch.next_end_ns <= from_ns || batch.next_begin_ns >= to_ns) continue;
      first = std::min(first, batch.next_begin_ns);
      last = std::max(last, batch.next_end_ns);
      next.add(static_cast<double>(batch.next_end_ns - batch.next_begin_ns));
      if (batch.ready >= 0) ready.add(static_cast<double>(batch.ready));
      if (batch.fetched()) {
        unpickle.add(stages.unpickled_in_next(b) ? static_cast<double>(stages.hand_out_ns(b)) : 0);
      }
      if (batch.fetched() && stages.ready_ns(b) > batch.next_begin_ns + 100'000 &&
          !stages.made_inline(b)) {
        ++waits;
        if (batch.ready > 0) ++out_of_turn;
      }
    }
    if (last <= first) continue;
    active += static_cast<double>(last - first);
    capacity += static_cast<double>(last - first) *
                static_cast<double>(std::max<size_t>(1, iterator.workers.size()));
    for (const model::Worker& worker : iterator.workers) {
      if (worker.empty) ++out.empty_workers;
      if (worker.batches.empty() && !iterator.batches.empty() && worker.process != kNone) {
        ++out.late_workers;
      }
      double feeder = 0;
      for (const uint32_t b : worker.batches) {
        const Batch& batch = model.loader.batches[b];
        busy += static_cast<double>(clipped(batch.fetch_begin_ns, batch.fetch_end_ns, first, last));
        feeder +=
            static_cast<double>(clipped(batch.pickle_begin_ns, batch.pickle_end_ns, first, last));
        pin_busy += static_cast<double>(clipped(batch.pin_begin_ns, batch.pin_end_ns, first, last));
      }
      feeder_busy = std::max(feeder_busy, feeder / static_cast<double>(last - first));
    }
  }
  for (const Batch& batch : model.loader.batches) {
    const Iterator& iterator = model.loader.iterators[batch.iterator];
    if (!batch.fetched() || iterator.process != process ||
        key_of(iterator) != key_of(model.loader.iterators[group->iterators.front()])) {
      continue;
    }
    if (batch.fetch_end_ns <= from_ns || batch.fetch_begin_ns >= to_ns) continue;
    ++out.batches;
    const double wall = static_cast<double>(batch.fetch_end_ns - batch.fetch_begin_ns);
    fetch.add(wall);
    if (batch.samples > 0) samples.add(static_cast<double>(batch.samples));
    if (batch.collate_ns >= 0) collate.add(static_cast<double>(batch.collate_ns));
    if (batch.pickle_end_ns != 0) {
      pickle.add(static_cast<double>(batch.pickle_end_ns - batch.pickle_begin_ns));
    }
    if (batch.pin_end_ns != 0) pin.add(static_cast<double>(batch.pin_end_ns - batch.pin_begin_ns));
    if (batch.bytes_read >= 0) bytes.add(static_cast<double>(batch.bytes_read));
    if (!batch.counted()) continue;
    counted += wall;
    cpu += static_cast<double>(batch.cpu_ns);
    run_queue += static_cast<double>(std::max<Ns>(0, batch.run_queue_ns));
    blocked += static_cast<double>(batch.blocked_ns());
    if (batch.blocked_on_storage()) storage += static_cast<double>(batch.blocked_ns());
  }
  out.fetch_mean_ns = fetch.value();
  out.fetch_cv = fetch.cv();
  out.collate_mean_ns = collate.value();
  out.pickle_mean_ns = pickle.value();
  out.pin_mean_ns = pin.value();
  out.unpickle_mean_ns = unpickle.value();
  if (next.value() > 0) out.unpickle_share = std::min(1.0, unpickle.value() / next.value());
  out.next_mean_ns = next.value();
  if (next.n > 0) out.period_mean_ns = active / next.n;
  out.samples_mean = samples.value();
  if (bytes.n > 0) out.fetch_bytes_mean = bytes.value();
  if (ready.n > 0) out.mean_ready = ready.value();
  if (counted > 0) {
    out.fetch_counters = true;
    out.fetch_cpu_share = std::min(1.0, cpu / counted);
    out.fetch_run_queue_share = std::min(1.0, run_queue / counted);
    out.fetch_blocked_share = blocked / counted;
    if (blocked > 0) out.blocked_storage_share = storage / blocked;
  }
  if (capacity > 0 && out.batches > 0 && out.num_workers > 0) {
    out.worker_busy_share = std::min(1.0, busy / capacity);
  }
  if (active > 0 && pin.n > 0) out.pin_busy_share = pin_busy / active;
  if (pickle.n > 0) out.ipc_busy_share = feeder_busy;
  if (waits > 0) {
    out.ordering_share = static_cast<double>(out_of_turn) / static_cast<double>(waits);
  }
  out.cores = model.recording.processes[process].header.process().cpu_count();
  out.cores_busy = cores_in_use(model, process, from_ns, to_ns);
  add_frames(model, *group, out);
  return out;
}

namespace {

// Whether the fetches together move no more when more of them run at once: a shared disk or
// link is the limit. Concurrency varies at least where workers start and run out of indices.
// With c = concurrency and ρ = blocked time, both relative to full concurrency, independent
// fetches have ρ = 1 and a shared limit has ρ = c; the slope of (1 − ρ) on (1 − c) tells.
bool throughput_is_flat(const model::Model& model, uint32_t process) {
  std::vector<const Batch*> fetched;
  for (const Batch& batch : model.loader.batches) {
    if (batch.fetched() && batch.counted() &&
        model.loader.iterators[batch.iterator].process == process) {
      fetched.push_back(&batch);
    }
  }
  if (fetched.size() < 30) return false;
  std::sort(fetched.begin(), fetched.end(),
            [](const Batch* a, const Batch* b) { return a->fetch_begin_ns < b->fetch_begin_ns; });
  struct Point {
    double concurrency;
    double blocked;
  };
  std::vector<Point> points;
  for (size_t i = 0; i < fetched.size(); ++i) {
    const Batch& batch = *fetched[i];
    Ns others = 0;
    for (size_t j = i > 64 ? i - 64 : 0; j < std::min(fetched.size(), i + 64); ++j) {
      others += clipped(fetched[j]->fetch_begin_ns, fetched[j]->fetch_end_ns, batch.fetch_begin_ns,
                        batch.fetch_end_ns);
    }
    points.push_back({static_cast<double>(others) /
                          static_cast<double>(batch.fetch_end_ns - batch.fetch_begin_ns),
                      static_cast<double>(batch.blocked_ns())});
  }
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.concurrency < b.concurrency; });
  const double full = points[points.size() / 2].concurrency;
  double blocked_full = 0;
  double n = 0;
  for (const Point& point : points) {
    if (point.concurrency < 0.97 * full) continue;
    blocked_full += point.blocked;
    n += 1;
  }
  if (full <= 1 || n == 0 || blocked_full <= 0) return false;
  blocked_full /= n;
  double covariance = 0;
  double variance = 0;
  for (const Point& point : points) {
    const double c = point.concurrency / full;
    if (c >= 0.97) break;
    covariance += (1 - c) * (1 - point.blocked / blocked_full);
    variance += (1 - c) * (1 - c);
  }
  return variance > 0.02 && covariance > 0.5 * variance;
}

// Share of the waiting that falls on the first batches after an epoch began.
double refill_share(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns) {
  double all = 0, first = 0;
  for (const Iterator& iterator : model.loader.iterators) {
    if (iterator.process != process) continue;
    const int64_t depth =
        std::max<int64_t>(1, iterator.num_workers) * std::max<int64_t>(1, iterator.prefetch);
    for (const uint32_t b : iterator.batches) {
      const Batch& batch = model.loader.batches[b];
      const double wait =
          static_cast<double>(clipped(batch.next_begin_ns, batch.next_end_ns, from_ns, to_ns));
      all += wait;
      if (batch.index < depth) first += wait;
    }
  }
  return all > 0 ? first / all : 0;
}

}  // namespace

namespace {

constexpr double kAllTheTime = 0.85;

// With workers that never pause, a batch would come every busy share of the time it takes now.
// Where most of the waiting would be left then, their pauses (order, prefetching) are not what
// limits.
bool mostly_too_slow(const LoaderSummary& loader) {
  if (loader.worker_busy_share <= 0 || loader.period_mean_ns <= 0) return false;
  const double saved = (1 - loader.worker_busy_share) * loader.period_mean_ns;
  return loader.next_mean_ns - saved > 0.5 * loader.next_mean_ns;
}

}  // namespace

report::Limiter find_limiter(const model::Model& model, uint32_t process,
                             const LoaderSummary& loader, Ns from_ns, Ns to_ns) {
  if (!loader.seen) return report::LIMITER_UNKNOWN;
  if (loader.num_workers == 0) return report::LIMITER_SERIAL;
  if (loader.num_workers < 0) return report::LIMITER_UNKNOWN;
  if (refill_share(model, process, from_ns, to_ns) > 0.5) return report::LIMITER_STARTUP;
  if (loader.batches == 0) return report::LIMITER_UNKNOWN;
  if (loader.pin_busy_share > 0.9) return report::LIMITER_PIN;
  if (loader.ipc_busy_share > 0.9) return report::LIMITER_IPC;
  // Most of next() is the main thread unpickling: more workers or batches ahead do not help.
  if (loader.unpickle_share > 0.5) return report::LIMITER_IPC;
  const bool cores_full = loader.cores > 0 && loader.cores_busy > 0.9 * loader.cores;
  if (cores_full || (loader.fetch_counters && loader.fetch_run_queue_share >= 0.2)) {
    return report::LIMITER_CORES;
  }
  if (loader.fetch_counters && loader.fetch_blocked_share > 0.5 &&
      throughput_is_flat(model, process)) {
    return loader.blocked_storage_share > 0.5 ? report::LIMITER_STORAGE : report::LIMITER_REMOTE;
  }
  if (loader.empty_workers > 0 || (loader.iterable && loader.late_workers > 0)) {
    return report::LIMITER_SHARDS;
  }
  if (loader.worker_busy_share > kAllTheTime || mostly_too_slow(loader)) {
    return report::LIMITER_WORKERS;
  }
  if (loader.ordering_share > 0.3) return report::LIMITER_ORDERING;
  if (loader.worker_busy_share >= 0) return report::LIMITER_PREFETCH;
  return report::LIMITER_UNKNOWN;
}

}  // namespace idlescope::diagnose
