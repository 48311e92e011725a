// Causes on the host: Python, GIL, allocation, compilation, checkpoints.
#include <algorithm>

#include "analysis/simulate/mechanism_catalogue.h"

namespace idlescope::simulate {
void add_host_mechanisms(std::vector<Mechanism>* catalogue) {
  using M = Mechanism;
  std::vector<Mechanism>& all = *catalogue;
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
                    s->host.gil_every_ns = 250000;
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
}

}  // namespace idlescope::simulate
