// The catalogue of causes. Each mechanism says how a cause comes about in a real job; its
// strength is nanoseconds per step of the resource it occupies.
#include <algorithm>

#include "analysis/simulate/scenario.h"

namespace idlescope::simulate {
namespace {

using report::Limiter;

// A worker's batch takes `amount` · workers, so that all of them together deliver one batch
// per `amount`.
Ns per_batch(const LoopSpec& spec, Ns amount_ns) {
  int workers = spec.loader.active_workers > 0 ? spec.loader.active_workers : spec.loader.workers;
  return amount_ns * std::max(1, workers) / std::max(1, spec.micro_steps * (spec.gan ? 2 : 1));
}

void small_kernels(LoopSpec* s) {
  s->model.kernel_ns = 12000;
  s->model.kernel_sigma = 350;
  s->model.optimizer_kernel_ns = 9000;
  s->model.dispatch_ns = 300;
  s->model.grid = 900;
  s->model.layers = 8;
  s->model.kernels_per_layer = 5;
  s->host.python_ns = 20000;
  s->loader.hand_out_ns = 15000;
  s->transfer.bytes = 64 << 10;
  s->loader.cpu_ns = 300000;
}

void many_epochs(LoopSpec* s) {
  s->loader.batches_per_epoch = 20;
  s->loader.persistent = false;
  s->loader.workers = 4;
}

void two_ranks(LoopSpec* s) {
  s->ranks = 2;
  s->steps = 60;
}

std::vector<Mechanism> make() {
  using M = Mechanism;
  std::vector<Mechanism> all;
  // --- data
  all.push_back(M{"data-storage",
                  "cold-read",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.read_ns = per_batch(*s, a) * 4 / 5;
                    s->loader.cpu_ns = per_batch(*s, a) / 5;
                    s->loader.read = Read::kColdFile;
                  },
                  [](LoopSpec* s) { s->loader.workers = 3; },
                  {report::LIMITER_WORKERS, report::LIMITER_STORAGE}});
  all.push_back(M{"data-storage",
                  "shared-bandwidth",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.read_ns = a * 9 / 10;
                    s->loader.cpu_ns = a / 10;
                    s->loader.read = Read::kColdFile;
                    s->storage_streams = 1;
                  },
                  [](LoopSpec* s) { s->loader.workers = 4; },
                  {report::LIMITER_STORAGE}});
  all.push_back(M{"data-storage",
                  "mapped-file",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.read_ns = per_batch(*s, a) * 7 / 10;
                    s->loader.cpu_ns = per_batch(*s, a) * 3 / 10;
                    s->loader.read = Read::kMapping;
                  },
                  [](LoopSpec* s) { s->loader.workers = 2; },
                  {report::LIMITER_WORKERS, report::LIMITER_STORAGE}});
  all.push_back(M{"data-remote",
                  "pipe",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.read_ns = per_batch(*s, a) * 9 / 10;
                    s->loader.cpu_ns = per_batch(*s, a) / 10;
                    s->loader.read = Read::kRemote;
                  },
                  [](LoopSpec* s) { s->loader.workers = 4; },
                  {report::LIMITER_WORKERS, report::LIMITER_REMOTE}});
  all.push_back(M{"data-cpu",
                  "decode",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->loader.cpu_ns = per_batch(*s, a);
                  },
                  [](LoopSpec* s) { s->loader.workers = 2; },
                  {report::LIMITER_WORKERS}});
  all.push_back(M{"data-cpu",
                  "uneven-decode",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.cpu_ns = per_batch(*s, a);
                    s->loader.cv_permille = 450;
                  },
                  [](LoopSpec* s) { s->loader.workers = 4; },
                  {report::LIMITER_WORKERS, report::LIMITER_ORDERING, report::LIMITER_PREFETCH}});
  all.push_back(M{"data-serial",
                  "inline-cpu",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->loader.cpu_ns = per_batch(*s, a);
                  },
                  [](LoopSpec* s) {
                    s->loader.workers = 0;
                    s->loader.cpu_ns = 300000;
                  },
                  {report::LIMITER_SERIAL}});
  all.push_back(M{"data-serial",
                  "inline-read",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.read_ns = per_batch(*s, a) * 3 / 4;
                    s->loader.cpu_ns = per_batch(*s, a) / 4;
                  },
                  [](LoopSpec* s) {
                    s->loader.workers = 0;
                    s->loader.cpu_ns = 300000;
                  },
                  {report::LIMITER_SERIAL}});
  all.push_back(M{"data-cores",
                  "oversubscribed",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->worker_cores = 2;
                    s->loader.cpu_ns = a * 2;
                  },
                  [](LoopSpec* s) {
                    s->loader.workers = 8;
                    s->loader.cpu_ns = 400000;
                  },
                  {report::LIMITER_CORES}});
  all.push_back(M{"data-gil",
                  "spinning-thread",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.gil_ns = per_batch(*s, a) * 7 / 10;
                    s->loader.cpu_ns = per_batch(*s, a) * 3 / 10;
                  },
                  [](LoopSpec* s) { s->loader.workers = 2; },
                  {report::LIMITER_WORKERS}});
  all.push_back(M{"data-collate",
                  "many-small-tensors",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->loader.collate_ns = per_batch(*s, a);
                  },
                  [](LoopSpec* s) { s->loader.workers = 2; },
                  {report::LIMITER_WORKERS}});
  all.push_back(M{"data-ipc",
                  "pickled-objects",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->loader.pickle_ns = per_batch(*s, a);
                  },
                  [](LoopSpec* s) { s->loader.workers = 1; },
                  {report::LIMITER_IPC}});
  all.push_back(M{"data-pin",
                  "slow-pin-thread",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed)
                      s->loader.pin_ns = a / std::max(1, s->micro_steps * (s->gan ? 2 : 1));
                  },
                  [](LoopSpec* s) { s->loader.workers = 4; },
                  {report::LIMITER_PIN}});
  all.push_back(M{"data-slow-sample",
                  "one-in-ten",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.slow_every = 10;
                    s->loader.slow_factor = static_cast<int>(
                        std::max<Ns>(1, a * 10 / std::max<Ns>(1, s->loader.cpu_ns)));
                  },
                  [](LoopSpec* s) {
                    s->loader.workers = 4;
                    s->loader.cpu_ns = 500000;
                  },
                  {report::LIMITER_ORDERING, report::LIMITER_PREFETCH}});
  all.push_back(M{"data-shards",
                  "too-few-shards",
                  false,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->loader.active_workers = removed ? s->loader.workers : 2;
                    s->loader.cpu_ns = a * 2 / std::max(1, s->micro_steps * (s->gan ? 2 : 1));
                  },
                  [](LoopSpec* s) { s->loader.workers = 8; },
                  {report::LIMITER_SHARDS}});
  all.push_back(M{"epoch-restart",
                  "fork-per-epoch",
                  false,
                  report::STARTUP,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->loader.worker_start_ns = removed ? 0 : a * 20;
                    s->loader.create_ns = removed ? 0 : 2000000;
                    if (removed) s->loader.persistent = true;
                  },
                  many_epochs,
                  {report::LIMITER_STARTUP}});
  // --- transfer
  all.push_back(M{"xfer-pageable",
                  "blocking-to",
                  false,
                  report::TRANSFER,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->transfer.path = CopyPath::kPageable;
                    s->transfer.bytes =
                        static_cast<uint64_t>(std::max<Ns>(8192, scale(a, 9000, 1000))) /
                        static_cast<uint64_t>(std::max(1, s->micro_steps * (s->gan ? 2 : 1)));
                  },
                  nullptr,
                  {}});
  all.push_back(M{"xfer-sync",
                  "pinned-blocking",
                  true,
                  report::TRANSFER,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->transfer.path = CopyPath::kPinnedBlocking;
                    s->transfer.bytes =
                        static_cast<uint64_t>(std::max<Ns>(8192, scale(a, 53000, 1000))) /
                        static_cast<uint64_t>(std::max(1, s->micro_steps * (s->gan ? 2 : 1)));
                  },
                  nullptr,
                  {}});
  all.push_back(M{"xfer-small",
                  "many-tensors",
                  false,
                  report::TRANSFER,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->transfer.small_copies = static_cast<int>(std::max<Ns>(1, a / 25000));
                  },
                  nullptr,
                  {}});
  // --- sync
  all.push_back(M{"sync",
                  "item-per-layer",
                  false,
                  report::SYNC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->host.layers_ns += a;
                    if (removed) return;
                    s->sync.kind = SyncKind::kItem;
                    s->sync.per_layers = 1;
                    s->sync.at_end = true;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"sync",
                  "item-per-step",
                  false,
                  report::SYNC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->host.python_ns += a;
                    if (removed) return;
                    s->sync.kind = SyncKind::kItem;
                    s->sync.at_end = true;
                    s->sync.every_steps = 1;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"sync",
                  "device-synchronize",
                  true,
                  report::SYNC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->host.layers_ns += a;
                    if (removed) return;
                    s->sync.kind = SyncKind::kDevice;
                    s->sync.per_layers = 1;
                    s->sync.at_end = true;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"sync",
                  "event-synchronize",
                  true,
                  report::SYNC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->host.python_ns += a;
                    if (removed) return;
                    s->sync.kind = SyncKind::kEvent;
                    s->sync.at_end = true;
                    s->sync.every_steps = 1;
                  },
                  nullptr,
                  {}});
  // --- launch
  all.push_back(M{"launch",
                  "tiny-kernels",
                  false,
                  report::LAUNCH,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) {
                      s->model.graph = true;  // what removes launching: one launch for all
                    } else {
                      s->model.extra_dispatch_ns += a;
                    }
                  },
                  small_kernels,
                  {}});
  all.push_back(M{"launch",
                  "optimizer-for-loop",
                  true,
                  report::LAUNCH,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) {
                      s->model.optimizer_kernels = 4;
                      s->model.optimizer_kernel_ns = 100000;
                    } else {
                      s->model.extra_optimizer_ns += a;
                    }
                  },
                  [](LoopSpec* s) {
                    s->model.kernel_ns = 25000;
                    s->model.optimizer_kernels = 160;
                    s->model.optimizer_kernel_ns = 2500;
                    s->model.dispatch_ns = 900;
                    s->host.python_ns = 30000;
                    s->loader.cpu_ns = 300000;
                    s->loader.read_ns = 30000;
                    s->loader.collate_ns = 30000;
                  },
                  {}});
  // --- host
  all.push_back(M{"host",
                  "python-between-steps",
                  false,
                  report::HOST,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->host.python_ns += a;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"host",
                  "python-in-forward",
                  true,
                  report::HOST,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->host.forward_ns += a;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"host",
                  "logging",
                  false,
                  report::HOST,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->host.logging_ns += a;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"host",
                  "garbage-collection",
                  true,
                  report::HOST,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->host.gc_every = 2;
                    s->host.gc_ns = a * 2;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"host",
                  "optimizer-python",
                  true,
                  report::HOST,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->host.optimizer_ns += a;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"host-blocked",
                  "gil-held",
                  false,
                  report::HOST,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->host.gil_every_ns = 1500000;
                    s->host.gil_hold_ns = std::max<Ns>(a / 4, 10000);
                  },
                  nullptr,
                  {}});
  all.push_back(M{"host-blocked",
                  "no-core-free",
                  true,
                  report::HOST,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->host.starved_ns = a;
                  },
                  nullptr,
                  {}});
  // --- allocation
  all.push_back(M{"alloc-device",
                  "empty-cache",
                  false,
                  report::ALLOC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->alloc.device_ns = std::max<Ns>(a, 60000);
                    s->alloc.empty_cache = true;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"alloc-device",
                  "malloc-per-step",
                  true,
                  report::ALLOC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->alloc.device_ns = std::max<Ns>(a, 60000);
                  },
                  nullptr,
                  {}});
  all.push_back(M{"alloc-pinned",
                  "host-alloc-per-batch",
                  false,
                  report::ALLOC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->alloc.pinned_ns = a;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"alloc-lock",
                  "pin-thread-allocates",
                  true,
                  report::ALLOC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed)
                      s->loader.pin_allocate_ns =
                          a / std::max(1, s->micro_steps * (s->gan ? 2 : 1));
                  },
                  [](LoopSpec* s) { s->loader.pin_ns = 200000; },
                  {}});
  // --- compile
  all.push_back(M{"compile",
                  "recompile-by-shape",
                  false,
                  report::COMPILE,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->compile.jit_every = 4;
                    s->compile.jit_ns = a * 4;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"compile",
                  "module-load",
                  true,
                  report::COMPILE,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->compile.module_every = 3;
                    s->compile.module_ns = a * 3;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"compile",
                  "graph-instantiate",
                  true,
                  report::COMPILE,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->compile.capture_every = 2;
                    s->compile.capture_ns = a * 2;
                  },
                  nullptr,
                  {}});
  // --- periodic
  all.push_back(M{"checkpoint",
                  "save-every-20",
                  false,
                  report::PERIODIC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->checkpoint.every = 20;
                    s->checkpoint.total_ns = a * 20;
                  },
                  nullptr,
                  {}});
  all.push_back(M{"checkpoint",
                  "save-every-12",
                  true,
                  report::PERIODIC,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->checkpoint.every = 12;
                    s->checkpoint.total_ns = a * 12;
                  },
                  nullptr,
                  {}});
  // --- communication
  all.push_back(M{"comm-straggler",
                  "slow-loader-on-one-rank",
                  false,
                  report::COMM,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->comm.straggler_rank = 1;
                    s->comm.straggler_cpu_ns = a;
                  },
                  two_ranks,
                  {}});
  all.push_back(M{"comm-straggler",
                  "slow-host-on-one-rank",
                  true,
                  report::COMM,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->comm.straggler_rank = 1;
                    s->comm.straggler_host_ns = a;
                  },
                  two_ranks,
                  {}});
  all.push_back(M{"comm-transfer",
                  "big-buckets",
                  false,
                  report::COMM,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->comm.transfer_ns =
                        removed ? 100000 : a / std::max(1, s->comm.buckets) + 100000;
                  },
                  two_ranks,
                  {}});
  return all;
}

}  // namespace

const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> all = make();
  return all;
}

const Mechanism* find_mechanism(std::string_view cause, std::string_view name) {
  for (const Mechanism& m : mechanisms()) {
    if (m.cause == cause && (name.empty() || m.name == name)) return &m;
  }
  return nullptr;
}

}  // namespace idlescope::simulate
