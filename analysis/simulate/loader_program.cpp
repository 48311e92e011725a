#include "analysis/simulate/loader_program.h"

#include <algorithm>

namespace idlescope::simulate {
namespace {

// What the draws are for.
enum : uint64_t { kRead = 0x100, kCpu, kGil, kCollate, kPickle, kPin, kStart };

constexpr int kChunks = 4;  // a fetch alternates between reading and decoding
constexpr Ns kShutdownNs = 3000000;
constexpr Ns kPutNs = 15000;
constexpr Ns kEpochCheckNs = 60000;

}  // namespace

LoaderProgram::LoaderProgram(ProgramBuilder* builder, const LoaderSpec& spec, const Draws& draws,
                             uint16_t rank, uint32_t process, uint32_t main, uint32_t iterator,
                             int total_batches, Ns inline_extra_cpu_ns)
    : builder_(builder),
      spec_(spec),
      draws_(draws.bits(key(0x10AD, key(rank, iterator)))),
      rank_(rank),
      process_(process),
      main_(main),
      iterator_(iterator),
      total_batches_(total_batches),
      per_epoch_(spec.batches_per_epoch > 0 ? spec.batches_per_epoch : total_batches),
      inline_extra_cpu_ns_(inline_extra_cpu_ns) {}

MarkSpec LoaderProgram::mark(trace::HostEventKind kind, uint32_t batch) const {
  MarkSpec m;
  m.kind = kind;
  m.iterator = iterator_;
  m.epoch = epoch_.number;
  m.batch_index = batch;
  if (batch != kNone) m.batch = builder_->program().batches[batch].index;
  return m;
}

Ns LoaderProgram::drawn(Ns mean, uint64_t what, int64_t index) const {
  Ns ns = draws_.jitter(mean, spec_.cv_permille, what, static_cast<uint64_t>(index));
  bool slow = spec_.slow_every > 0 && index % spec_.slow_every == spec_.slow_every / 2;
  return slow && (what == kRead || what == kCpu) ? ns * spec_.slow_factor : ns;
}

void LoaderProgram::fetch(uint32_t thread, uint32_t batch, int64_t global_index,
                          int worker_number) {
  ProgramBuilder& b = *builder_;
  Ns read = drawn(spec_.read_ns, kRead, global_index);
  Ns cpu = drawn(spec_.cpu_ns, kCpu, global_index);
  Ns gil = drawn(spec_.gil_ns, kGil, global_index);
  if (worker_number < 0) cpu += inline_extra_cpu_ns_;
  MarkSpec m = mark(trace::EVENT_WORKER_FETCH, batch);
  if (worker_number >= 0) m.iterator = 0;  // workers do not know their iterator
  m.a = spec_.samples;
  m.c = worker_number;
  if (spec_.read != Read::kRemote && read > 0) {
    m.io_bytes = spec_.samples * int64_t{110000};
    m.blocks_read = spec_.read == Read::kColdFile;
    m.faults = spec_.read == Read::kMapping;
  }
  uint32_t id = b.mark_begin(thread, m);
  Leaf blocked = spec_.read == Read::kRemote ? report::DATA_REMOTE : report::DATA_STORAGE;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    if (spec_.read == Read::kRemote) {
      b.pause(thread, read / kChunks, blocked);
    } else {
      b.io(thread, read / kChunks, blocked);
    }
    b.run(thread, cpu / kChunks, report::DATA_CPU);
    b.pause(thread, gil / kChunks, report::DATA_CONTENDED);
  }
  b.run(thread, drawn(spec_.collate_ns, kCollate, global_index) + 20000, report::DATA_COLLATE);
  b.mark_end(thread, id);
}

void LoaderProgram::worker_batch(uint32_t worker, uint32_t feeder, uint32_t batch,
                                 int64_t global_index, int worker_number) {
  ProgramBuilder& b = *builder_;
  BatchSpec& spec = b.program().batches[batch];
  uint32_t wait = b.mark_begin(worker, mark(trace::EVENT_WORKER_INDEX_WAIT, batch));
  b.await(worker, spec.issued_flag, 30000, report::DATA_QUEUED);
  b.mark_end(worker, wait);
  fetch(worker, batch, global_index, worker_number);
  uint32_t put = b.mark_begin(worker, mark(trace::EVENT_WORKER_PUT, batch));
  b.set(worker, spec.put_flag);
  b.run(worker, kPutNs, report::DATA_IPC);
  b.mark_end(worker, put);

  b.await(feeder, spec.put_flag, 8000, report::DATA_IPC);
  uint32_t pickle = b.mark_begin(feeder, mark(trace::EVENT_WORKER_PICKLE, batch));
  b.run(feeder, drawn(spec_.pickle_ns, kPickle, global_index) + 30000, report::DATA_IPC);
  b.mark_end(feeder, pickle);
  b.pause(feeder, spec_.pipe_ns, report::DATA_IPC);
  b.set(feeder, spec.sent_flag);
}

// Threads (and, unless they persist, processes) of an epoch's workers, and their batches.
void LoaderProgram::make_workers(Epoch* epoch, bool start_processes) {
  ProgramBuilder& b = *builder_;
  int active =
      spec_.active_workers > 0 ? std::min(spec_.active_workers, spec_.workers) : spec_.workers;
  if (start_processes) {
    worker_threads_.clear();
    feeder_threads_.clear();
    for (int w = 0; w < spec_.workers; ++w) {
      uint32_t process = b.process(rank_, process_, w);
      uint32_t worker = b.thread(Role::kWorker, rank_, process, true);
      worker_threads_.push_back(worker);
      feeder_threads_.push_back(b.thread(Role::kFeeder, rank_, process, true));
      uint32_t created = b.flag();
      uint32_t started = b.mark_begin(main_, [&] {
        MarkSpec m = mark(trace::EVENT_LOADER_WORKER_STARTED, kNone);
        m.a = w;
        m.b = process;
        return m;
      }());
      b.mark_end(main_, started);
      b.set(main_, created);
      b.await(worker, created, 0, report::DATA_STARTUP);
      b.run(worker,
            draws_.jitter(spec_.worker_start_ns, 80, kStart, key(epoch->number, w)) + 400000,
            report::DATA_STARTUP);
      MarkSpec loop = mark(trace::EVENT_WORKER_LOOP, kNone);
      loop.iterator = 0;
      loop.a = w;
      b.instant(worker, loop);
      if (w >= active) {
        MarkSpec empty = mark(trace::EVENT_WORKER_EMPTY, kNone);
        empty.a = w;
        b.instant(worker, empty);
      }
    }
  }
  for (int k = 0; k < epoch->batches; ++k) {
    int w = k % active;
    BatchSpec batch;
    batch.iterator = iterator_;
    batch.epoch = epoch->number;
    batch.index = k;
    batch.issued_flag = b.flag();
    batch.put_flag = b.flag();
    batch.sent_flag = b.flag();
    batch.ready_flag = spec_.pin ? b.flag() : batch.sent_flag;
    batch.worker_number = w;
    batch.worker_thread = worker_threads_[static_cast<size_t>(w)];
    batch.feeder_thread = feeder_threads_[static_cast<size_t>(w)];
    batch.pin_thread = spec_.pin ? pin_thread_ : kNone;
    auto id = static_cast<uint32_t>(b.program().batches.size());
    b.program().batches.push_back(batch);
    epoch->batch.push_back(id);
    if (spec_.pin) {
      PinItem item;
      item.thread = pin_thread_;
      item.batch = id;
      item.unpickle_ns = spec_.unpickle_ns;
      item.copy_ns = drawn(spec_.pin_ns, kPin, epoch->first + k) + 20000;
      item.allocate_ns = spec_.pin_allocate_ns;
      item.result_flag = batch.ready_flag;
      b.program().pin_item_of_flag[batch.sent_flag] =
          static_cast<uint32_t>(b.program().pin_items.size());
      b.program().pin_items.push_back(item);
    }
    worker_batch(batch.worker_thread, batch.feeder_thread, id, epoch->first + k, w);
  }
}

void LoaderProgram::begin_epoch() {
  ProgramBuilder& b = *builder_;
  bool first = epoch_number_ == 0;
  bool new_iterator = first || !spec_.persistent || spec_.workers == 0;
  if (!first && new_iterator) ++iterator_;
  epoch_ = {};
  epoch_.number = new_iterator ? 0 : epoch_number_;
  epoch_.first = delivered_;
  epoch_.batches = std::min(per_epoch_, total_batches_ - delivered_);
  ++epoch_number_;
  in_epoch_ = 0;

  MarkSpec create =
      mark(new_iterator ? trace::EVENT_LOADER_CREATE : trace::EVENT_LOADER_RESET, kNone);
  if (new_iterator) {
    create.a = spec_.workers;
    create.b = spec_.prefetch;
    create.c =
        (spec_.pin ? trace::LOADER_FLAG_PIN_MEMORY : 0) |
        (spec_.persistent ? trace::LOADER_FLAG_PERSISTENT : 0) |
        (spec_.active_workers > 0 ? trace::LOADER_FLAG_ITERABLE : 0) |
        (spec_.worker_start_ns > 50000000 ? trace::LOADER_FLAG_SPAWN : trace::LOADER_FLAG_FORK);
  }
  uint32_t id = b.mark_begin(main_, create);
  if (spec_.workers > 0) {
    if (new_iterator) {
      if (spec_.pin && pin_thread_ == kNone) pin_thread_ = b.thread(Role::kPin, rank_, process_);
      b.run(main_, spec_.create_ns * spec_.workers, report::DATA_STARTUP);
    }
    make_workers(&epoch_, new_iterator);
    int primed = std::min<int>(spec_.workers * spec_.prefetch, epoch_.batches);
    for (int k = 0; k < primed; ++k) {
      b.set(main_, b.program().batches[epoch_.batch[static_cast<size_t>(k)]].issued_flag);
    }
    b.run(main_, 20000 * primed, report::DATA_STARTUP);
  } else {
    b.run(main_, 100000, report::DATA_STARTUP);
  }
  b.mark_end(main_, id);
  if (new_iterator) {
    MarkSpec site = mark(trace::EVENT_LOADER_SITE, kNone);
    site.a = b.name("train.py:41 main");
    site.a_is_name = true;
    site.c = spec_.samples;
    b.instant(main_, site);
  }
}

void LoaderProgram::inline_batch(uint32_t batch, int64_t global_index) {
  ProgramBuilder& b = *builder_;
  fetch(main_, batch, global_index, -1);
  Ns pin = drawn(spec_.pin_ns, kPin, global_index);
  if (spec_.pin && pin > 0) {
    uint32_t id = b.mark_begin(main_, mark(trace::EVENT_LOADER_PIN_INLINE, batch));
    b.run(main_, pin, report::DATA_PIN);
    b.mark_end(main_, id);
  }
}

void LoaderProgram::next() {
  ProgramBuilder& b = *builder_;
  if (epoch_number_ == 0 || in_epoch_ == epoch_.batches) {
    if (epoch_number_ > 0) end_epoch();
    begin_epoch();
  }
  int k = in_epoch_++;
  int64_t global_index = delivered_++;
  if (spec_.workers == 0) {
    BatchSpec batch;
    batch.iterator = iterator_;
    batch.epoch = epoch_.number;
    batch.index = k;
    auto id = static_cast<uint32_t>(b.program().batches.size());
    b.program().batches.push_back(batch);
    uint32_t next = b.mark_begin(main_, mark(trace::EVENT_LOADER_NEXT, id));
    uint32_t wait = b.mark_begin(main_, mark(trace::EVENT_LOADER_WAIT, id));
    inline_batch(id, global_index);
    b.mark_end(main_, wait);
    b.run(main_, 15000, report::DATA_WAKE);
    b.mark_end(main_, next);
    return;
  }
  uint32_t id = epoch_.batch[static_cast<size_t>(k)];
  BatchSpec batch = b.program().batches[id];
  uint32_t next = b.mark_begin(main_, mark(trace::EVENT_LOADER_NEXT, id));
  uint32_t wait = b.mark_begin(main_, mark(trace::EVENT_LOADER_WAIT, id));
  b.await(main_, batch.ready_flag, b.program().machine.wake_ns, report::DATA_WAKE);
  if (!spec_.pin) b.run(main_, spec_.unpickle_ns, report::DATA_IPC);
  b.mark_end(main_, wait);
  b.run(main_, spec_.hand_out_ns, report::DATA_WAKE);
  int issued = k + spec_.workers * spec_.prefetch;
  if (issued < epoch_.batches) {
    b.set(main_, b.program().batches[epoch_.batch[static_cast<size_t>(issued)]].issued_flag);
  }
  b.mark_end(main_, next);
}

void LoaderProgram::end_epoch() {
  ProgramBuilder& b = *builder_;
  uint32_t id = b.mark_begin(main_, mark(trace::EVENT_LOADER_END, kNone));
  b.run(main_, kEpochCheckNs, report::DATA_STARTUP);
  if (spec_.workers > 0 && !spec_.persistent) {
    MarkSpec m = mark(trace::EVENT_LOADER_SHUTDOWN, kNone);
    m.a = spec_.workers;
    uint32_t shutdown = b.mark_begin(main_, m);
    b.pause(main_, kShutdownNs * spec_.workers, report::DATA_STARTUP);
    b.mark_end(main_, shutdown);
  }
  b.mark_end(main_, id);
}

void LoaderProgram::finish() {
  if (epoch_number_ > 0) end_epoch();
}

}  // namespace idlescope::simulate
