// What the host does beside launching: Python, logging, gc, allocation, compilation,
// checkpoints, evaluation.
#include <algorithm>

#include "analysis/simulate/rank_loop.h"

namespace idlescope::simulate {
namespace {

enum : uint64_t { kHost = 0x300, kFirstUse };

}  // namespace

Ns RankLoop::vary(Ns ns, int s, uint64_t what) const {
  return draws_.jitter(ns, 60, key(kHost, what), static_cast<uint64_t>(s));
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

}  // namespace idlescope::simulate
