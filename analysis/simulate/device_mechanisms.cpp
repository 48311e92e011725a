// Causes between host and device: copies, synchronisation, launching, other ranks.
#include <algorithm>

#include "analysis/simulate/mechanism_catalogue.h"

namespace idlescope::simulate {
namespace {

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

void two_ranks(LoopSpec* s) {
  s->ranks = 2;
  s->steps = 60;
}

}  // namespace

void add_device_mechanisms(std::vector<Mechanism>* catalogue) {
  using M = Mechanism;
  std::vector<Mechanism>& all = *catalogue;
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
  all.push_back(M{
      "comm-transfer",
      "one-bucket",
      true,
      report::COMM,
      [](LoopSpec* s, Ns a, bool removed) { s->comm.transfer_ns = removed ? 100000 : a + 100000; },
      [](LoopSpec* s) {
        two_ranks(s);
        s->comm.buckets = 1;
      },
      {}});
  all.push_back(M{"comm-straggler",
                  "slow-kernels-on-one-rank",
                  true,
                  report::COMM,
                  [](LoopSpec* s, Ns a, bool removed) {
                    if (removed) return;
                    s->comm.straggler_rank = 1;
                    const ModelSpec& m = s->model;
                    Ns compute = 3 * m.layers * m.kernels_per_layer * m.kernel_ns;
                    s->comm.straggler_kernels_permille = scale(a, 1000, std::max<Ns>(compute, 1));
                  },
                  two_ranks,
                  {}});
}

}  // namespace idlescope::simulate
