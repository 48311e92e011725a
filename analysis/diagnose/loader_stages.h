// Where batch k was while next(k) waited for it (B4).
//
// In: a stretch of time inside next() of a batch. Out: pieces that cover it exactly, one
// per stage of the recorded life of that batch:
//
//   next(k)      ├───────────────────────────────────────────────────────┤
//   worker   fetch of k-w ├────┤ fetch of k ├───────────┤collate├┤
//   feeder                                                      pickle├─┤
//   pin thread                                                           copy├┤
//   leaf     (stage of k-w)│queued│storage│contended│cpu│collate│ ipc   │pin│wake
//
// Where the workers are what limits the loader, a batch that leaves its worker while the next
// fetch runs (and often late, for the interpreter lock) is charged to that fetch: sending it sooner
// would only move the wait to the batch after it.
//
// The counters of a fetch are sums, so inside a fetch storage, contention and CPU are
// shares: a stretch that covers part of a fetch gets them in proportion (grade B).
#pragma once

#include <vector>

#include "analysis/diagnose/piece.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

class LoaderStages {
 public:
  LoaderStages(const model::LoaderHistory& history);

  // Cuts [begin_ns, end_ns) inside next() of `batch` into `out`.
  void cut(uint32_t batch, Ns begin_ns, Ns end_ns, Pieces& out) const;

  // When the batch was complete on the consumer's side; the end of its next() where no
  // worker record says so.
  Ns ready_ns(uint32_t batch) const;
  // The batch was made inside next() itself (num_workers = 0): it is work, not waiting.
  bool made_inline(uint32_t batch) const;
  // Without a pin thread next() itself reads and unpickles what the worker sent. How long
  // that took, where it was more than waking up.
  bool unpickled_in_next(uint32_t batch) const;
  Ns hand_out_ns(uint32_t batch) const;

 private:
  void cut_fetch(const model::Batch& batch, uint32_t index, Ns begin_ns, Ns end_ns, Ns clip_end,
                 Pieces& out) const;
  // Between the worker's fetch and the consumer.
  void cut_transport(const model::Batch& batch, uint32_t index, Ns begin_ns, Ns end_ns, Grade grade,
                     Pieces& out) const;
  void cut_before_fetch(const model::Batch& batch, uint32_t index, Ns begin_ns, Ns end_ns,
                        Pieces& out) const;

  const model::LoaderHistory& history_;
  // By iterator: its workers fetch all the time and nothing behind them is busy for long.
  std::vector<bool> workers_limit_;
};

}  // namespace idlescope::diagnose
