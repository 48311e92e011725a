#include "analysis/diagnose/loader_stages.h"

#include <algorithm>

namespace idlescope::diagnose {
namespace {

using model::Batch;
using model::Worker;

// Longer than this a thread does not take to wake up: next() is reading the batch.
constexpr Ns kWakeUp = 1'000'000;

// Adds pieces in time order without gaps; empty ones are dropped.
class Cutter {
 public:
  Cutter(Ns begin_ns, Ns end_ns, uint32_t batch, Pieces& out)
      : at_(begin_ns), end_(end_ns), batch_(batch), out_(out) {}

  void until(Ns time_ns, report::Leaf leaf, Grade grade) {
    const Ns to = std::min(time_ns, end_);
    if (to <= at_) return;
    Piece piece;
    piece.begin_ns = at_;
    piece.end_ns = to;
    piece.leaf = leaf;
    piece.grade = grade;
    piece.batch = batch_;
    out_.push_back(piece);
    at_ = to;
  }
  // What lies before was added by somebody else.
  void skip_to(Ns time_ns) { at_ = std::max(at_, time_ns); }
  Ns at() const { return at_; }
  bool done() const { return at_ >= end_; }

 private:
  Ns at_;
  Ns end_;
  uint32_t batch_;
  Pieces& out_;
};

// Of the whole life of a loader, start-up and full queues included, its workers fetch at least
// this much; serialising and pinning take less than that.
constexpr double kMostly = 0.6;
constexpr double kNotMuch = 0.5;

bool workers_are_the_limit(const model::LoaderHistory& history, const model::Iterator& iterator) {
  if (iterator.workers.empty()) return false;
  double fetching = 0;
  double alive = 0;
  double pinning = 0;
  for (const Worker& worker : iterator.workers) {
    Ns first = INT64_MAX;
    Ns last = INT64_MIN;
    double pickling = 0;
    for (const uint32_t b : worker.batches) {
      const Batch& batch = history.batches[b];
      if (!batch.fetched() || batch.fetch_end_ns <= batch.fetch_begin_ns) continue;
      first = std::min(first, batch.fetch_begin_ns);
      last = std::max(last, batch.fetch_end_ns);
      fetching += static_cast<double>(batch.fetch_end_ns - batch.fetch_begin_ns);
      pickling += static_cast<double>(batch.pickle_end_ns - batch.pickle_begin_ns);
      pinning += static_cast<double>(batch.pin_end_ns - batch.pin_begin_ns);
    }
    if (last <= first) continue;
    const double span = static_cast<double>(last - first);
    if (pickling > kNotMuch * span) return false;
    alive += span;
  }
  // The pin thread is one for all of them.
  const double workers = static_cast<double>(iterator.workers.size());
  return alive > 0 && fetching > kMostly * alive && pinning * workers < kNotMuch * alive;
}

}  // namespace

LoaderStages::LoaderStages(const model::LoaderHistory& history) : history_(history) {
  for (const model::Iterator& iterator : history.iterators) {
    workers_limit_.push_back(workers_are_the_limit(history, iterator));
  }
}

bool LoaderStages::made_inline(uint32_t b) const {
  const Batch& batch = history_.batches[b];
  if (batch.fetched() && batch.next_event != kNone) {
    return batch.fetch_begin_ns >= batch.next_begin_ns && batch.fetch_end_ns <= batch.next_end_ns &&
           history_.iterators[batch.iterator].num_workers <= 0 && batch.worker == kNone;
  }
  return history_.iterators[batch.iterator].num_workers == 0;
}

Ns LoaderStages::ready_ns(uint32_t b) const {
  const Batch& batch = history_.batches[b];
  if (batch.pin_put_end_ns != 0) return batch.pin_put_end_ns;
  if (batch.pin_end_ns != 0) return batch.pin_end_ns;
  if (batch.pickle_end_ns != 0) return batch.pickle_end_ns;
  if (batch.put_end_ns != 0) return batch.put_end_ns;
  if (batch.fetch_end_ns != 0) return batch.fetch_end_ns;
  // Its worker was not seen. With batches in the queue it lay there, for how long is unknown:
  // nothing says that an earlier next() would have had to wait.
  return batch.ready > 0 ? 0 : batch.next_end_ns;
}

bool LoaderStages::unpickled_in_next(uint32_t b) const {
  const Batch& batch = history_.batches[b];
  const model::Iterator& iterator = history_.iterators[batch.iterator];
  return iterator.num_workers > 0 && !iterator.has(trace::LOADER_FLAG_THREADS) &&
         !iterator.has(trace::LOADER_FLAG_PIN_MEMORY) && batch.pin_end_ns == 0 &&
         hand_out_ns(b) > kWakeUp;
}

Ns LoaderStages::hand_out_ns(uint32_t b) const {
  const Batch& batch = history_.batches[b];
  return std::max<Ns>(0, batch.next_end_ns - std::max(ready_ns(b), batch.next_begin_ns));
}

// [begin, end) lies inside the fetch. Order inside: storage or remote, contended, CPU, then
// collate at the end, whose length is recorded.
void LoaderStages::cut_fetch(const Batch& batch, uint32_t index, Ns begin_ns, Ns end_ns,
                             Ns clip_end, Pieces& out) const {
  Cutter cutter(begin_ns, std::min(end_ns, clip_end), index, out);
  if (!batch.counted()) {
    const Ns collate_from =
        batch.collate_ns > 0 ? batch.fetch_end_ns - batch.collate_ns : batch.fetch_end_ns;
    cutter.until(collate_from, report::DATA_FETCH, Grade::kB);
    cutter.until(end_ns, report::DATA_COLLATE, Grade::kA);
    return;
  }
  const Ns wall = batch.fetch_end_ns - batch.fetch_begin_ns;
  const Ns collate = std::clamp<Ns>(batch.collate_ns, 0, wall);
  const Ns collate_from = batch.fetch_end_ns - collate;
  const Ns part_begin = begin_ns;
  const Ns part_end = std::min(std::min(end_ns, clip_end), collate_from);
  const Ns part = part_end - part_begin;
  const Ns load = collate_from - batch.fetch_begin_ns;  // fetch without collate
  if (part > 0 && load > 0) {
    const bool whole = part == load;
    const Grade grade = whole ? Grade::kA : Grade::kB;
    Ns blocked = std::min(batch.blocked_ns(), load);
    Ns contended = std::clamp<Ns>(batch.run_queue_ns, 0, load - blocked);
    // Other threads of the process burned CPU while this one did not run: the GIL.
    const Ns others = batch.process_cpu_ns - batch.cpu_ns;
    if (blocked > 0 && batch.process_cpu_ns >= 0 && !batch.blocked_on_storage() &&
        2 * others > blocked) {
      contended += blocked;
      blocked = 0;
    }
    const auto share = [&](Ns of) {
      return static_cast<Ns>(
          static_cast<double>(of) / static_cast<double>(load) * static_cast<double>(part) + 0.5);
    };
    const report::Leaf wait =
        batch.blocked_on_storage() ? report::DATA_STORAGE : report::DATA_REMOTE;
    const Ns wait_end = std::min(part_end, part_begin + share(blocked));
    const Ns contended_end = std::min(part_end, wait_end + share(contended));
    cutter.until(wait_end, wait, grade);
    cutter.until(contended_end, report::DATA_CONTENDED, grade);
    cutter.until(part_end, report::DATA_CPU, grade);
  }
  cutter.until(end_ns, report::DATA_COLLATE, Grade::kA);
}

void LoaderStages::cut_transport(const Batch& batch, uint32_t index, Ns begin_ns, Ns end_ns,
                                 Grade grade, Pieces& out) const {
  Cutter cutter(begin_ns, end_ns, index, out);
  if (workers_limit_[batch.iterator] && batch.worker != kNone) {
    const Worker& worker = history_.iterators[batch.iterator].workers[batch.worker];
    auto next = std::partition_point(
        worker.batches.begin(), worker.batches.end(),
        [&](uint32_t other) { return history_.batches[other].fetch_end_ns <= begin_ns; });
    for (; next != worker.batches.end() && !cutter.done(); ++next) {
      const Batch& later = history_.batches[*next];
      if (later.fetch_begin_ns >= end_ns) break;
      const Ns stop = std::min(end_ns, later.fetch_end_ns);
      cutter.until(later.fetch_begin_ns, report::DATA_IPC, grade);
      if (stop <= cutter.at()) continue;
      const size_t mark = out.size();
      cut_fetch(later, index, cutter.at(), stop, stop, out);
      for (size_t i = mark; i < out.size(); ++i) out[i].grade = std::max(out[i].grade, Grade::kB);
      cutter.skip_to(stop);
    }
  }
  cutter.until(end_ns, report::DATA_IPC, grade);
}

// The index was queued: the worker was still starting, or busy with an earlier batch.
void LoaderStages::cut_before_fetch(const Batch& batch, uint32_t index, Ns begin_ns, Ns end_ns,
                                    Pieces& out) const {
  Cutter cutter(begin_ns, end_ns, index, out);
  if (batch.worker == kNone) {
    cutter.until(end_ns, report::DATA_QUEUED, Grade::kB);
    return;
  }
  const Worker& worker = history_.iterators[batch.iterator].workers[batch.worker];
  if (worker.loop_begin_ns != 0)
    cutter.until(worker.loop_begin_ns, report::DATA_STARTUP, Grade::kA);
  // Batches of this worker before ours that overlap the stretch.
  const auto first = std::partition_point(
      worker.batches.begin(), worker.batches.end(),
      [&](uint32_t other) { return history_.batches[other].fetch_end_ns <= cutter.at(); });
  const bool none_before = first == worker.batches.begin();
  for (auto it = first; it != worker.batches.end() && !cutter.done(); ++it) {
    const Batch& earlier = history_.batches[*it];
    if (&earlier == &batch || earlier.fetch_begin_ns >= end_ns) break;
    cutter.until(earlier.fetch_begin_ns, report::DATA_QUEUED, Grade::kB);
    const Ns from = cutter.at();
    const Ns to = std::min(end_ns, earlier.fetch_end_ns);
    if (to > from) {
      const size_t mark = out.size();
      cut_fetch(earlier, index, from, to, to, out);
      for (size_t i = mark; i < out.size(); ++i) out[i].grade = std::max(out[i].grade, Grade::kB);
      cutter.skip_to(to);
    }
  }
  // A worker that has not fetched anything yet and whose loop was not seen is starting.
  const bool starting = none_before && worker.loop_begin_ns == 0 && !worker.batches.empty() &&
                        &history_.batches[worker.batches.front()] == &batch;
  cutter.until(end_ns, starting ? report::DATA_STARTUP : report::DATA_QUEUED, Grade::kB);
}

void LoaderStages::cut(uint32_t b, Ns begin_ns, Ns end_ns, Pieces& out) const {
  const Batch& batch = history_.batches[b];
  Cutter cutter(begin_ns, end_ns, b, out);
  if (!batch.fetched()) {
    const bool unseen = history_.iterators[batch.iterator].by_name_only;
    cutter.until(end_ns, unseen ? report::DATA_UNSEEN : report::DATA_FETCH, Grade::kB);
    return;
  }
  if (begin_ns < batch.fetch_begin_ns) {
    const Ns to = std::min(end_ns, batch.fetch_begin_ns);
    if (made_inline(b)) {
      cutter.until(to, report::DATA_CPU, Grade::kB);  // sampler, hand-over
    } else {
      cut_before_fetch(batch, b, begin_ns, to, out);
      cutter.skip_to(to);
    }
  }
  if (!cutter.done() && cutter.at() < batch.fetch_end_ns) {
    const Ns to = std::min(end_ns, batch.fetch_end_ns);
    cut_fetch(batch, b, cutter.at(), to, to, out);
    cutter.skip_to(to);
  }
  if (made_inline(b)) {
    // Without workers the batch is pinned by next() itself after the fetch.
    const bool pins = history_.iterators[batch.iterator].has(trace::LOADER_FLAG_PIN_MEMORY);
    if (pins) cutter.until(end_ns, report::DATA_PIN, Grade::kB);
  } else if (batch.pin_end_ns != 0) {
    // Unpickling happens in the pin thread, so all before its copy is transport.
    const Ns to = std::min(end_ns, batch.pin_begin_ns);
    if (to > cutter.at()) cut_transport(batch, b, cutter.at(), to, Grade::kA, out);
    cutter.skip_to(to);
    cutter.until(batch.pin_end_ns, report::DATA_PIN, Grade::kA);
  } else {
    const Ns to = std::min(end_ns, ready_ns(b));
    const Grade grade = batch.pickle_end_ns != 0 ? Grade::kA : Grade::kB;
    if (to > cutter.at()) cut_transport(batch, b, cutter.at(), to, grade, out);
    cutter.skip_to(to);
    if (unpickled_in_next(b)) cutter.until(end_ns, report::DATA_IPC, Grade::kB);
  }
  cutter.until(end_ns, report::DATA_WAKE, Grade::kA);
}

}  // namespace idlescope::diagnose
