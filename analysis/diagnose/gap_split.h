// Why the device was idle between two ops (B1): the gap, cut into pieces with a leaf each.
//
// In: a gap [g0, g1) of a device and the op that ended it. Out: pieces that cover the gap
// exactly.
//
//   device ████|░░░░░░░░░░░░░░░░░░░░░░░░░░░░|█████
//            g0|  host chain    │call│tail│γ|g1
//   host    ├next()┤ python      ├launch┤            γ: DISPATCH, which even a perfect
//                                                    launcher would pay
//
// A launch that had returned before g0 was queued: then the wait is on the device (COMM,
// DISPATCH or UNKNOWN_DEPENDENCY). A call that waited for the device across g0 goes through
// local_replay.h, and so do the gaps that its lost run-ahead reaches.
#pragma once

#include <utility>
#include <vector>

#include "analysis/diagnose/call_leaf.h"
#include "analysis/diagnose/constants.h"
#include "analysis/diagnose/host_chain.h"
#include "analysis/diagnose/loader_stages.h"
#include "analysis/diagnose/piece.h"
#include "analysis/diagnose/run_ahead.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

class GapSplit {
 public:
  GapSplit(const model::Model& model, const model::DeviceTimeline& device,
           const Constants& constants, const CallLeaf& calls);

  // `op`: Process::ops of the op that ends the gap. `previous`: the op that ended last
  // before g0; kNone: none. Appends to `out`. Returns the number of hops.
  // Gaps come in time order; forget() where some are left out.
  uint32_t split(Ns g0, Ns g1, uint32_t op, uint32_t previous, Pieces& out);
  void forget() { ahead_.reset(); }

  const HostChain& chain() const { return chain_; }
  const LoaderStages& stages() const { return stages_; }
  // Call that launched the op, or for an op without one the next joined op's on its stream
  // (FIFO, grade B); kNone: unknown.
  uint32_t launch_of(uint32_t op, bool& inferred) const;

  // Longest time that an op had been queued when a gap without known cause ended at it.
  Ns longest_unexplained_queue_ns() const { return longest_queue_; }

 private:
  void wait_on_device(Ns begin_ns, Ns end_ns, uint32_t op, uint32_t call, Pieces& out);
  void add_wait_before(Ns g0);
  void charge_building(size_t mark, Pieces& out) const;
  void index_unjoined();
  void index_other_devices();
  bool other_device_ended(Ns begin_ns, Ns end_ns) const;
  bool autotunes(Ns begin_ns, Ns end_ns) const;

  const model::Model& model_;
  const model::DeviceTimeline& device_;
  const read::Process& process_;
  const model::ProcessModel& owner_;
  const Constants& constants_;
  const CallLeaf& calls_;
  HostChain chain_;
  LoaderStages stages_;
  Ns first_call_ns_ = 0;
  Ns skew_ns_ = 0;
  Ns longest_queue_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>> unjoined_;  // (op, bounding call), by op
  std::vector<Ns> other_ends_;  // op ends on other devices of the process, sorted
  std::vector<model::Stretch> autotuning_;
  std::vector<HostPiece> host_;
  RunAhead ahead_;
};

}  // namespace idlescope::diagnose
