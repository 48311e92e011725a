// Causes in the data loader.
#include <algorithm>

#include "analysis/simulate/mechanism_catalogue.h"

namespace idlescope::simulate {
namespace {

// A worker's batch takes `amount` · workers, so that all of them together deliver one batch
// per `amount`.
Ns per_batch(const LoopSpec& spec, Ns amount_ns) {
  int workers = spec.loader.active_workers > 0 ? spec.loader.active_workers : spec.loader.workers;
  return amount_ns * std::max(1, workers) / std::max(1, spec.micro_steps * (spec.gan ? 2 : 1));
}

void many_epochs(LoopSpec* s) {
  s->loader.batches_per_epoch = 20;
  s->loader.persistent = false;
  s->loader.workers = 4;
}

}  // namespace

void add_data_mechanisms(std::vector<Mechanism>* catalogue) {
  using M = Mechanism;
  std::vector<Mechanism>& all = *catalogue;
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
  // --- second ways of the causes above
  all.push_back(M{"data-remote",
                  "uneven-network",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.read_ns = per_batch(*s, a) * 4 / 5;
                    s->loader.cpu_ns = per_batch(*s, a) / 5;
                    s->loader.read = Read::kRemote;
                    s->loader.cv_permille = 300;
                  },
                  [](LoopSpec* s) { s->loader.workers = 2; },
                  {report::LIMITER_WORKERS, report::LIMITER_REMOTE, report::LIMITER_ORDERING,
                   report::LIMITER_PREFETCH}});
  all.push_back(M{"data-cores",
                  "one-core",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->worker_cores = 1;
                    s->loader.cpu_ns = a;
                  },
                  [](LoopSpec* s) {
                    s->loader.workers = 3;
                    s->loader.cpu_ns = 200000;
                  },
                  {report::LIMITER_CORES}});
  all.push_back(M{"data-collate",
                  "padding",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->loader.collate_ns = per_batch(*s, a) * 7 / 10;
                    s->loader.cpu_ns = per_batch(*s, a) * 3 / 10;
                  },
                  [](LoopSpec* s) { s->loader.workers = 4; },
                  {report::LIMITER_WORKERS}});
  all.push_back(M{"data-ipc",
                  "large-batches-of-objects",
                  true,
                  report::DATA,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (!removed) s->loader.pickle_ns = per_batch(*s, a);
                  },
                  [](LoopSpec* s) {
                    s->loader.workers = 2;
                    s->loader.samples = 256;
                  },
                  {report::LIMITER_IPC}});
  all.push_back(M{"epoch-restart",
                  "short-epochs",
                  true,
                  report::STARTUP,
                  [](LoopSpec* s, Ns a, bool removed) {
                    s->loader.worker_start_ns = removed ? 0 : a * 12;
                    s->loader.create_ns = removed ? 0 : 3000000;
                    if (removed) s->loader.persistent = true;
                  },
                  [](LoopSpec* s) {
                    many_epochs(s);
                    s->loader.batches_per_epoch = 12;
                    s->loader.workers = 2;
                  },
                  {report::LIMITER_STARTUP}});
}

}  // namespace idlescope::simulate
