// The host side of a recording: loader, worker, pin, range and step events, CPU samples.
#include <algorithm>

#include "analysis/simulate/recorded_process.h"

namespace idlescope::simulate {
namespace {

constexpr Ns kQuietNs = 200'000;  // a CPU sample follows a longer silence of a thread

}  // namespace

bool ProcessRecording::kept(trace::HostEventKind kind, int64_t category) const {
  if (kind <= trace::EVENT_LOADER_PIN_INLINE) return kept(trace::KIND_LOADER);
  if (kind >= trace::EVENT_PIN_WAIT && kind <= trace::EVENT_PIN_PUT)
    return kept(trace::KIND_LOADER);
  if (kind == trace::EVENT_WORKER_FETCH_CPU || kind == trace::EVENT_WORKER_FETCH_IO) {
    return kept(trace::KIND_LOADER_WORKER) && kept(trace::KIND_COUNTER);
  }
  if (kind >= trace::EVENT_WORKER_LOOP && kind <= trace::EVENT_WORKER_DATASET) {
    return kept(trace::KIND_LOADER_WORKER);
  }
  if (kind == trace::EVENT_STEP) return kept(trace::KIND_STEP);
  if (kind == trace::EVENT_RANGE && category == trace::RANGE_NVTX) return kept(trace::KIND_NVTX);
  if (kind == trace::EVENT_THREAD_CPU) return kept(trace::KIND_COUNTER);
  return kept(trace::KIND_PYTHON_RANGE);
}

trace::HostEvent* ProcessRecording::add_event(trace::HostEventKind kind, uint32_t thread, Ns begin,
                                              Ns end) {
  if (events_ == nullptr || events_->event_size() >= 8192) {
    events_ = trace_.add_packet()->mutable_host_events();
  }
  trace::HostEvent* event = events_->add_event();
  event->set_kind(kind);
  event->set_thread_id(thread_id(thread));
  event->set_begin_ns(kRecordingBase + begin);
  event->set_end_ns(kRecordingBase + end);
  event->set_batch(-1);
  return event;
}

// Batches that wait to be taken at `now`, of the same iterator and epoch; and those with a worker.
int64_t ProcessRecording::ready_batches(const BatchSpec& batch, Ns now, int64_t* in_flight) const {
  int64_t ready = 0;
  *in_flight = 0;
  for (const BatchSpec& other : program_.batches) {
    if (other.iterator != batch.iterator || other.epoch != batch.epoch ||
        other.index < batch.index || other.issued_flag == kNone || other.worker_thread == kNone ||
        program_.threads[other.worker_thread].rank != program_.threads[batch.worker_thread].rank) {
      continue;
    }
    if (other.index > batch.index + 512) break;
    Ns issued = run_.flag_ns[other.issued_flag];
    Ns done = run_.flag_ns[other.ready_flag];
    if (issued < 0 || issued > now) continue;
    if (done >= 0 && done <= now) {
      ++ready;
    } else {
      ++*in_flight;
    }
  }
  return ready;
}

// CPU, run-queue and I/O figures of one fetch, as the worker's counters give them.
void ProcessRecording::add_fetch_counters(const trace::HostEvent& fetch, const MarkSpec& spec,
                                          uint32_t thread) {
  Ns begin = fetch.begin_ns() - kRecordingBase;
  Ns end = fetch.end_ns() - kRecordingBase;
  const std::vector<Segment>& log = run_.threads[thread];
  Ns cpu = 0;
  Ns delay = 0;
  Ns others = 0;
  for (auto it = std::upper_bound(log.begin(), log.end(), begin,
                                  [](Ns t, const Segment&s) { return t < s.end_ns; });
       it != log.end() && it->begin_ns < end; ++it) {
    const Instruction& in = program_.threads[thread].code[it->instruction];
    Ns wall = it->end_ns - it->begin_ns;
    if (in.what == Do::kRun) {
      cpu += in.ns;
      delay += std::max<Ns>(wall - in.ns, 0);
    }
    if (in.leaf == report::DATA_CONTENDED) others += wall;
  }
  Ns noise = draws_.uniform(-6000, 6000, 5, key(thread, static_cast<uint64_t>(begin)));
  auto times = [&](trace::HostEventKind kind) {
    trace::HostEvent* e = add_event(kind, thread, begin, end);
    e->set_batch(fetch.batch());
    e->set_iterator(fetch.iterator());
    return e;
  };
  if (kept(trace::EVENT_WORKER_FETCH_CPU, 0)) {
    trace::HostEvent* e = times(trace::EVENT_WORKER_FETCH_CPU);
    e->set_a(std::clamp<Ns>(cpu + noise, 0, end - begin));
    e->set_b(std::clamp<Ns>(cpu + noise, 0, end - begin) + others);
    e->set_c(std::max<Ns>(delay, 0));
  }
  if (kept(trace::EVENT_WORKER_FETCH_IO, 0)) {
    trace::HostEvent* e = times(trace::EVENT_WORKER_FETCH_IO);
    e->set_a(spec.faults ? spec.io_bytes / 131072 + 1 : 0);
    e->set_b(spec.blocks_read || spec.faults ? spec.io_bytes / 512 : 0);
    e->set_c(spec.faults ? 2000 : spec.io_bytes);
  }
}

void ProcessRecording::add_mark(uint32_t mark) {
  const MarkSpec& spec = program_.marks[mark];
  Ns begin = run_.mark_begin_ns[mark];
  Ns end = run_.mark_end_ns[mark];
  if (begin < 0 || end < 0 || !kept(spec.kind, spec.b)) return;
  uint32_t thread = run_.mark_thread[mark];
  trace::HostEvent* event = add_event(spec.kind, thread, begin, end);
  event->set_iterator(spec.iterator);
  event->set_epoch(spec.epoch);
  event->set_batch(spec.batch);
  event->set_a(spec.a_is_name ? name(program_.names[static_cast<size_t>(spec.a)]) : spec.a);
  event->set_b(spec.b);
  event->set_c(spec.c_is_name ? name(program_.names[static_cast<size_t>(spec.c)]) : spec.c);
  switch (spec.kind) {
    case trace::EVENT_LOADER_NEXT: {
      const BatchSpec& batch = program_.batches[spec.batch_index];
      int64_t in_flight = 0;
      event->set_a(batch.issued_flag == kNone ? 0 : ready_batches(batch, begin, &in_flight));
      event->set_b(in_flight);
      break;
    }
    case trace::EVENT_LOADER_WORKER_STARTED:
      event->set_b(pid_of(static_cast<uint32_t>(spec.b), view_));
      break;
    case trace::EVENT_WORKER_LOOP:
      event->set_b(pid_of(program_.processes[process_].parent, view_));
      event->set_end_ns(kRecordingBase + run_.threads[thread].back().end_ns);
      break;
    case trace::EVENT_WORKER_FETCH: {
      // Time in collate_fn: the last run of the fetch.
      Ns collate = 0;
      for (const Segment& s : run_.threads[thread]) {
        if (s.begin_ns >= end) break;
        bool inside = s.begin_ns >= begin && s.end_ns <= end;
        if (inside && program_.threads[thread].code[s.instruction].leaf == report::DATA_COLLATE) {
          collate += s.end_ns - s.begin_ns;
        }
      }
      event->set_b(collate);
      trace::HostEvent copy = *event;  // adding events may move `event`
      add_fetch_counters(copy, spec, thread);
      break;
    }
    default:
      break;
  }
}

void ProcessRecording::add_pin_events() {
  for (uint32_t t : threads_) {
    if (program_.threads[t].role != Role::kPin) continue;
    Ns free = 0;
    for (const Segment& s : run_.threads[t]) {
      const PinItem& item = program_.pin_items[s.instruction];
      const BatchSpec& batch = program_.batches[item.batch];
      auto event = [&](trace::HostEventKind kind, Ns begin, Ns end) {
        if (!kept(kind, 0)) return;
        trace::HostEvent* e = add_event(kind, t, begin, end);
        e->set_iterator(batch.iterator);
        e->set_epoch(batch.epoch);
        e->set_batch(batch.index);
      };
      Ns copy = s.begin_ns + item.unpickle_ns;
      Ns put = std::max(copy, s.end_ns - 5000);
      event(trace::EVENT_PIN_WAIT, free, copy);
      event(trace::EVENT_PIN_COPY, copy, put);
      event(trace::EVENT_PIN_PUT, put, s.end_ns);
      free = s.end_ns;
    }
  }
}

// The thread CPU clock at the entry of an API call that follows a long silence.
void ProcessRecording::add_thread_cpu(const WindowRun& window) {
  if (!kept(trace::EVENT_THREAD_CPU, 0)) return;
  for (uint32_t t : threads_) {
    if (program_.threads[t].role == Role::kPin) continue;
    Ns last_end = 0;
    Ns cpu = 0;
    for (const Segment& s : run_.threads[t]) {
      const Instruction& in = program_.threads[t].code[s.instruction];
      bool api = in.what == Do::kLaunch || in.what == Do::kSync || in.what == Do::kCall;
      bool inside = s.begin_ns >= window.begin_ns && s.begin_ns < window.end_ns;
      if (api && inside && s.begin_ns - last_end > kQuietNs) {
        add_event(trace::EVENT_THREAD_CPU, t, s.begin_ns, s.begin_ns)->set_a(cpu);
      }
      if (api) last_end = s.end_ns;
      if (in.what == Do::kRun) cpu += std::min(in.ns, s.end_ns - s.begin_ns);
      if (api) cpu += s.end_ns - s.begin_ns;
    }
  }
}

void ProcessRecording::add_host_events() {
  for (uint32_t i = 0; i < program_.marks.size(); ++i) {
    uint32_t thread = run_.mark_thread[i];
    if (thread != kNone && program_.threads[thread].process == process_) add_mark(i);
  }
  add_pin_events();
}

}  // namespace idlescope::simulate
