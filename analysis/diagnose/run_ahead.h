// How far the host would be ahead of the device had its waiting calls returned at once.
//
// A call that waits for the device costs more than the gap it straddles: the host starts
// again beside an empty device, and until it is ahead once more every launch it is late with
// is the wait's doing. The part of a wait that its own gap did not use up is kept here and
// pays for the gaps that follow, the latest wait first.
//
//   device  ████████|░░|█|░░|█|░░|█████      .item() waited over █ that was queued;
//   host    ├.item()──┤l  l    l  l l l      all three gaps are its, not the launches'
//
// In: what local_replay.h found gap by gap, in time order. Out: pieces for the time paid.
// The lead is limited by what the driver's queue holds. It ends where the host is ahead again
// (an op that was queued when the gap began), and where it had to arrive late anyway (a batch
// that was not ready).
#pragma once

#include <deque>

#include "analysis/diagnose/host_chain.h"
#include "analysis/diagnose/piece.h"

namespace idlescope::diagnose {

class RunAhead {
 public:
  explicit RunAhead(Ns limit_ns) : limit_(limit_ns) {}

  void reset();
  Ns lead_ns() const { return lead_; }
  // `wait` would have let the host arrive `ns` earlier.
  void earn(const HostPiece& wait, Ns ns);
  // Pays for [begin_ns, begin_ns + ns); what the lead does not cover is left out.
  void spend(Ns begin_ns, Ns ns, Grade grade, Pieces& out);
  // No more than `ns` of the lead is left.
  void keep_at_most(Ns ns);

 private:
  struct Wait {
    report::Leaf leaf;
    uint32_t call;
    uint32_t thread;
    Ns ns;
  };
  Ns limit_;
  Ns lead_ = 0;
  std::deque<Wait> waits_;  // earliest first
};

}  // namespace idlescope::diagnose
