#include "analysis/simulate/loop_program.h"

#include "analysis/simulate/rank_loop.h"

namespace idlescope::simulate {

RankLoop::RankLoop(ProgramBuilder* builder, const LoopSpec& spec, uint16_t rank,
                   std::array<std::vector<uint32_t>, 2>* collectives)
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
    models_.push_back(
        std::make_unique<ModelProgram>(b_, spec_, shared, rank, static_cast<uint32_t>(i), main_,
                                       autograd_, gil_, &(*collectives)[static_cast<size_t>(i)]));
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

void RankLoop::build() {
  b_->run(main_, 2000000, report::STARTUP_LEAF);
  for (int s = 0; s < spec_.steps; ++s) step(s);
  if (loader_) loader_->finish();
  b_->stream_sync(main_, rank_, kComputeStream, report::STARTUP_LEAF);
  b_->window(main_, false);
  background();
}

Program build_loop(const LoopSpec& spec) {
  Machine machine = draw_machine(Draws(spec.seed));
  machine.worker_cores = spec.worker_cores;
  machine.cores = spec.worker_cores + 2;
  ProgramBuilder builder(machine, spec.ranks);
  std::array<std::vector<uint32_t>, 2> collectives;
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
