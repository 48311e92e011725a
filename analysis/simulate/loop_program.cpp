#include "analysis/simulate/loop_program.h"

#include <algorithm>
#include <memory>
#include <string>

#include "analysis/simulate/loader_program.h"
#include "analysis/simulate/model_program.h"

namespace idlescope::simulate {
namespace {

enum : uint64_t { kHost = 0x300, kFirstUse };

class RankLoop {
 public:
  RankLoop(ProgramBuilder* builder, const LoopSpec& spec, uint16_t rank,
           std::vector<uint32_t>* collectives);
  void build();

 private:
  void step(int s);
  void micro_step(int s, int micro);
  uint32_t transfer();
  OpSpec host_copy(trace::CopyKind kind, uint64_t bytes, bool pageable, uint16_t stream) const;
  void item();
  void synchronise(SyncKind kind);
  void after_layer(int s, int micro, int layer);
  void first_use(int s, int layer);
  void allocate(int s);
  void compile(int s);
  void host_work(int s);
  void checkpoint(int s);
  void evaluation(int s);
  void background();
  Ns vary(Ns ns, int s, uint64_t what) const;
  void windows(int s, bool middle);

  ProgramBuilder* b_;
  const LoopSpec& spec_;
  Draws draws_;
  uint16_t rank_;
  uint32_t process_;
  uint32_t main_;
  uint32_t autograd_ = kNone;
  uint32_t gil_ = kNone;
  std::unique_ptr<LoaderProgram> loader_;
  std::unique_ptr<LoaderProgram> evaluation_loader_;
  std::vector<std::unique_ptr<ModelProgram>> models_;
  uint32_t prefetched_ = kNone;
  int batches_left_ = 0;
};

RankLoop::RankLoop(ProgramBuilder* builder, const LoopSpec& spec, uint16_t rank,
                   std::vector<uint32_t>* collectives)
    : b_(builder), spec_(spec), draws_(key(spec.seed, rank + 1U)), rank_(rank) {
  process_ = b_->process(rank);
  main_ = b_->thread(Role::kMain, rank, process_);
  if (spec.model.autograd_thread && !spec.model.graph) {
    autograd_ = b_->thread(Role::kAutograd, rank, process_);
  }
  if (spec.host.gil_hold_ns > 0) gil_ = b_->lock();
  int models = spec.gan ? 2 : 1;
  Draws shared(spec.seed);
  for (int i = 0; i < models; ++i) {
    models_.push_back(std::make_unique<ModelProgram>(
        b_, spec_, shared, rank, static_cast<uint32_t>(i), main_, autograd_, gil_, collectives));
  }
  batches_left_ = spec.steps * spec.micro_steps * models;
  if (spec.loader.on) {
    LoaderSpec loader = spec.loader;
    Ns extra = 0;
    if (rank == spec.comm.straggler_rank && spec.comm.straggler_cpu_ns > 0) {
      loader.workers = 0;
      loader.cpu_ns = loader.read_ns = loader.collate_ns = 0;
      extra = spec.comm.straggler_cpu_ns;
    }
    loader_ = std::make_unique<LoaderProgram>(b_, loader, draws_, rank, process_, main_, 1,
                                              batches_left_, extra);
  }
  if (spec.evaluation.every > 0) {
    LoaderSpec loader;
    loader.workers = 0;
    loader.pin = false;
    loader.cpu_ns = 150000;
    loader.batches_per_epoch = spec.evaluation.batches;
    int total = spec.evaluation.batches * (spec.steps / spec.evaluation.every + 1);
    evaluation_loader_ =
        std::make_unique<LoaderProgram>(b_, loader, draws_, rank, process_, main_, 1000, total, 0);
  }
}

Ns RankLoop::vary(Ns ns, int s, uint64_t what) const {
  return draws_.jitter(ns, 60, key(kHost, what), static_cast<uint64_t>(s));
}

OpSpec RankLoop::host_copy(trace::CopyKind kind, uint64_t bytes, bool pageable,
                           uint16_t stream) const {
  const Machine& m = b_->program().machine;
  OpSpec op;
  op.kind = trace::OP_MEMCPY;
  op.copy_kind = kind;
  trace::MemoryKind host = pageable ? trace::MEMORY_PAGEABLE : trace::MEMORY_PINNED;
  op.src = kind == trace::COPY_H2D ? host : trace::MEMORY_DEVICE;
  op.dst = kind == trace::COPY_H2D ? trace::MEMORY_DEVICE : host;
  op.rank = rank_;
  op.stream = stream;
  op.bytes = bytes;
  op.duration_ns = copy_ns(bytes, pageable ? m.pageable_mb_s : m.pinned_mb_s, m.copy_setup_ns);
  return op;
}

// loss.item(): a scalar to the host, then a stream synchronisation (ATen Copy.cu).
void RankLoop::item() {
  OpSpec op = host_copy(trace::COPY_D2H, 4, true, kComputeStream);
  op.exposed_leaf = report::SYNC_SCALAR;
  b_->run(main_, 5000, report::LAUNCH_LEAF);
  b_->blocking_copy(main_, op, true, report::SYNC_SCALAR);
}

void RankLoop::synchronise(SyncKind kind) {
  switch (kind) {
    case SyncKind::kNoSync:
      break;
    case SyncKind::kItem:
      item();
      break;
    case SyncKind::kDevice:
      b_->device_sync(main_, rank_, trace::CALL_DEVICE_SYNC, "cudaDeviceSynchronize", 0, 0,
                      report::SYNC_EXPLICIT);
      break;
    case SyncKind::kEvent:
      b_->event_sync(main_, b_->last_op(rank_, kComputeStream), report::SYNC_EVENT);
      break;
  }
}

// Batch to the device. Returns the op that forward has to wait for on another stream.
uint32_t RankLoop::transfer() {
  const TransferSpec& t = spec_.transfer;
  for (int i = 0; i < t.small_copies; ++i) {
    OpSpec op = host_copy(trace::COPY_H2D, t.small_bytes, false, kComputeStream);
    models_[0]->dispatch(main_, 5000);
    b_->blocking_copy(main_, op, false, report::XFER_SMALL);
  }
  switch (t.path) {
    case CopyPath::kNoCopy:
      return kNone;
    case CopyPath::kPinnedAsync:
      models_[0]->dispatch(main_, 6000);
      b_->copy(main_, host_copy(trace::COPY_H2D, t.bytes, false, kComputeStream), false,
               report::LAUNCH_LEAF);
      return kNone;
    case CopyPath::kPinnedBlocking:
      models_[0]->dispatch(main_, 6000);
      b_->blocking_copy(main_, host_copy(trace::COPY_H2D, t.bytes, false, kComputeStream), false,
                        report::XFER_SYNC);
      return kNone;
    case CopyPath::kPageable:
      models_[0]->dispatch(main_, 6000);
      b_->blocking_copy(main_, host_copy(trace::COPY_H2D, t.bytes, true, kComputeStream), true,
                        report::XFER_PAGEABLE);
      return kNone;
    case CopyPath::kPrefetched:
      models_[0]->dispatch(main_, 8000);
      return b_->copy(main_, host_copy(trace::COPY_H2D, t.bytes, false, kCopyStream), false,
                      report::LAUNCH_LEAF);
  }
  return kNone;
}

// Modules are loaded and memory is allocated when first used.
void RankLoop::first_use(int s, int layer) {
  if (s >= spec_.warmup) return;
  Ns ns = draws_.uniform(400000, 2500000, kFirstUse,
                         key(static_cast<uint64_t>(s), static_cast<uint64_t>(layer)));
  if (s == 0)
    b_->call(main_, trace::CALL_MODULE_LOAD, "cuLibraryLoadData", ns, report::COMPILE_MODULE);
  if (s < 2) {
    b_->call(main_, trace::CALL_ALLOC_DEVICE, "cudaMalloc", ns / 4, report::ALLOC_DEVICE, 64 << 20);
  }
}

void RankLoop::after_layer(int s, int micro, int layer) {
  const LoopSpec& p = spec_;
  first_use(s, layer);
  if (layer == p.model.layers / 2) {
    windows(s, true);
    b_->run(main_, vary(p.host.forward_ns / p.micro_steps, s, 1), report::HOST_FORWARD);
    if (p.alloc.device_ns > 0 && micro == 0) allocate(s);
  }
  if (p.host.starved_ns > 0) {
    int per = std::max<int>(1, static_cast<int>(p.host.starved_ns / 3000000));
    int every = std::max(1, p.model.layers / per);
    if (layer % every == 0 && layer / every < per) {
      b_->pause(main_, vary(p.host.starved_ns / per / p.micro_steps, s * 64 + layer, 2),
                report::HOST_BLOCKED);
    }
  }
  if (p.sync.per_layers > 0 && (layer + 1) % p.sync.per_layers == 0) synchronise(p.sync.kind);
  b_->run(main_, vary(p.host.layers_ns / p.model.layers / p.micro_steps, s * 64 + layer, 14),
          report::HOST_FORWARD);
}

void RankLoop::allocate(int s) {
  const AllocSpec& a = spec_.alloc;
  Ns each = vary(a.device_ns / (2 * a.calls), s, 3);
  for (int i = 0; i < a.calls; ++i) {
    if (a.empty_cache) {
      b_->device_sync(main_, rank_, trace::CALL_FREE_DEVICE, "cudaFree", each, 64 << 20,
                      report::ALLOC_DEVICE);
    } else {
      b_->call(main_, trace::CALL_ALLOC_DEVICE, "cudaMalloc", each, report::ALLOC_DEVICE, 20 << 20);
    }
  }
  for (int i = 0; i < a.calls; ++i) {
    b_->call(main_, trace::CALL_ALLOC_DEVICE, "cudaMalloc", each, report::ALLOC_DEVICE, 64 << 20);
  }
}

void RankLoop::compile(int s) {
  const CompileSpec& c = spec_.compile;
  auto due = [&](int every) { return every > 0 && s % every == every / 2; };
  if (due(c.jit_every)) {
    uint32_t range = b_->range_begin(main_, "torch._dynamo.compile", trace::RANGE_COMPILE);
    b_->run(main_, vary(c.jit_ns, s, 4) * 19 / 20, report::COMPILE_JIT);
    b_->call(main_, trace::CALL_MODULE_LOAD, "cuModuleLoadData", c.jit_ns / 20,
             report::COMPILE_MODULE);
    b_->mark_end(main_, range);
  }
  if (due(c.module_every)) {
    b_->call(main_, trace::CALL_MODULE_LOAD, "cuLibraryLoadData", vary(c.module_ns, s, 5),
             report::COMPILE_MODULE);
  }
  if (due(c.capture_every)) {
    b_->call(main_, trace::CALL_GRAPH_INSTANTIATE, "cudaGraphInstantiate", vary(c.capture_ns, s, 6),
             report::COMPILE_CAPTURE);
  }
}

void RankLoop::micro_step(int s, int micro) {
  auto model = static_cast<size_t>(spec_.gan ? micro % 2 : 0);
  uint32_t input = kNone;
  bool prefetched = spec_.transfer.path == CopyPath::kPrefetched;
  if (prefetched && prefetched_ != kNone) {
    input = prefetched_;
  } else {
    if (loader_) loader_->next();
    --batches_left_;
    input = transfer();
  }
  if (spec_.alloc.pinned_ns > 0) {
    b_->call(main_, trace::CALL_ALLOC_PINNED, "cudaHostAlloc",
             vary(spec_.alloc.pinned_ns / spec_.micro_steps, s, 7), report::ALLOC_PINNED,
             spec_.transfer.bytes);
  }
  if (micro == 0) compile(s);
  ModelProgram& m = *models_[model];
  if (spec_.model.graph) {
    m.graph_step(s, input);
    after_layer(s, micro, spec_.model.layers / 2);
  } else {
    m.forward(s, input, [&](int layer) { after_layer(s, micro, layer); });
    m.backward(s, spec_.gan || micro == spec_.micro_steps - 1);
  }
  if (prefetched && batches_left_ > 0) {
    if (loader_) loader_->next();
    --batches_left_;
    prefetched_ = transfer();
  }
}

void RankLoop::host_work(int s) {
  const HostSpec& h = spec_.host;
  if (gil_ != kNone) b_->lock(main_, gil_, report::HOST_BLOCKED);
  Ns python = vary(h.python_ns, s, 8);
  if (rank_ == spec_.comm.straggler_rank) python += vary(spec_.comm.straggler_host_ns, s, 9);
  b_->run(main_, python, report::HOST_PYTHON);
  if (gil_ != kNone) b_->unlock(main_, gil_);
  if (h.logging_ns > 0 && s % h.logging_every == 0) {
    uint32_t range = b_->range_begin(main_, "SummaryWriter.add_scalar", trace::RANGE_LOGGING);
    b_->run(main_, vary(h.logging_ns, s, 10), report::HOST_LOGGING);
    b_->mark_end(main_, range);
  }
  if (h.gc_ns > 0 && s % h.gc_every == h.gc_every / 2) {
    MarkSpec gc;
    gc.kind = trace::EVENT_GC;
    gc.a = 2;
    gc.b = 100;
    uint32_t id = b_->mark_begin(main_, gc);
    b_->run(main_, vary(h.gc_ns, s, 11), report::HOST_GC);
    b_->mark_end(main_, id);
  }
}

void RankLoop::checkpoint(int s) {
  const CheckpointSpec& c = spec_.checkpoint;
  if (c.every <= 0 || s % c.every != c.every - 1) return;
  const Machine& m = b_->program().machine;
  if (c.in_background) {
    auto bytes = static_cast<uint64_t>(scale(c.total_ns, m.pinned_mb_s, 1000));
    b_->copy(main_, host_copy(trace::COPY_D2H, bytes, false, kSideStream), false,
             report::LAUNCH_LEAF, {b_->last_op(rank_, kComputeStream)});
    return;
  }
  auto bytes = static_cast<uint64_t>(scale(c.total_ns / 10, m.pageable_mb_s, 1000));
  MarkSpec mark;
  mark.kind = trace::EVENT_CHECKPOINT;
  mark.a = static_cast<int64_t>(bytes);
  uint32_t id = b_->mark_begin(main_, mark);
  OpSpec op = host_copy(trace::COPY_D2H, bytes, true, kComputeStream);
  op.exposed_leaf = report::CKPT;
  b_->blocking_copy(main_, op, true, report::CKPT);
  b_->run(main_, c.total_ns * 3 / 10, report::CKPT);
  b_->pause(main_, c.total_ns * 6 / 10, report::CKPT);
  b_->mark_end(main_, id);
}

void RankLoop::evaluation(int s) {
  const EvaluationSpec& e = spec_.evaluation;
  if (e.every <= 0 || s % e.every != e.every - 1) return;
  uint32_t range = b_->range_begin(main_, "evaluate", trace::RANGE_EVALUATION);
  for (int i = 0; i < e.batches; ++i) {
    evaluation_loader_->next();
    models_[0]->dispatch(main_, 6000);
    b_->copy(main_, host_copy(trace::COPY_H2D, spec_.transfer.bytes, false, kComputeStream), false,
             report::LAUNCH_LEAF);
    models_[0]->forward(s * 100 + i, kNone, [](int) {});
  }
  b_->run(main_, 100000, report::HOST_EVALUATION);
  b_->mark_end(main_, range);
}

void RankLoop::windows(int s, bool middle) {
  for (const WindowSpec& w : spec_.windows) {
    if (w.end_step == 0 || w.mid_step != middle) continue;
    if (s == w.begin_step) b_->window(main_, true);
    if (s == w.end_step) b_->window(main_, false);
  }
}

void RankLoop::step(int s) {
  windows(s, false);
  int rounds = spec_.micro_steps * (spec_.gan ? 2 : 1);
  for (int micro = 0; micro < rounds; ++micro) {
    micro_step(s, micro);
    bool ends_first = spec_.gan ? micro == 0 : micro == rounds - 1;
    bool ends_second = spec_.gan && micro == rounds - 1;
    if (ends_first || ends_second) {
      ModelProgram& m = *models_[ends_second ? 1 : 0];
      m.optimizer(s);
      b_->step_mark(main_, rank_, spec_.gan ? ends_second : true, ends_second ? "SGD" : "AdamW", s);
    }
  }
  if (spec_.alloc.empty_cache && spec_.alloc.device_ns > 0) {
    b_->run(main_, 20000, report::HOST_PYTHON);
  }
  if (spec_.sync.at_end && s % spec_.sync.every_steps == 0) synchronise(spec_.sync.kind);
  host_work(s);
  checkpoint(s);
  evaluation(s);
}

// A thread of the job that holds the GIL now and then in native code.
void RankLoop::background() {
  if (gil_ == kNone) return;
  uint32_t thread = b_->thread(Role::kBackground, rank_, process_);
  int rounds = spec_.steps * 400;
  for (int i = 0; i < rounds; ++i) {
    b_->pause(thread, vary(spec_.host.gil_every_ns, i, 12), report::LEAF_UNSPECIFIED);
    b_->lock(thread, gil_, report::LEAF_UNSPECIFIED);
    b_->run(thread, vary(spec_.host.gil_hold_ns, i, 13), report::LEAF_UNSPECIFIED);
    b_->unlock(thread, gil_);
  }
}

void RankLoop::build() {
  b_->run(main_, 2000000, report::STARTUP_LEAF);
  for (int s = 0; s < spec_.steps; ++s) step(s);
  if (loader_) loader_->finish();
  b_->stream_sync(main_, rank_, kComputeStream, report::STARTUP_LEAF);
  b_->window(main_, false);
  background();
}

}  // namespace

Program build_loop(const LoopSpec& spec) {
  Machine machine = draw_machine(Draws(spec.seed));
  machine.worker_cores = spec.worker_cores;
  machine.cores = spec.worker_cores + 2;
  ProgramBuilder builder(machine, spec.ranks);
  std::vector<uint32_t> collectives;
  for (uint16_t rank = 0; rank < spec.ranks; ++rank) {
    RankLoop(&builder, spec, rank, &collectives).build();
  }
  Program& program = builder.program();
  program.storage_streams = spec.storage_streams;
  program.first_steady_step = static_cast<uint32_t>(spec.warmup);
  program.micro_steps = static_cast<uint32_t>(spec.micro_steps);
  return std::move(program);
}

}  // namespace idlescope::simulate
