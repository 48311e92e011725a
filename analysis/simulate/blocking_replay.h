// What a blocking call really cost (analysis B3): time without compute, run again as if the
// call had returned at once.
//
// The call that straddles the moment the device ran dry owes what every later gap would
// shrink by, until the host is ahead of the device again: small copies, memsets and kernels
// in between do not end its account. In: gaps in order of time. Out: their labels.
#pragma once

#include <span>
#include <vector>

#include "analysis/simulate/device_labels.h"
#include "analysis/simulate/thread_walk.h"

namespace idlescope::simulate {

class BlockingReplay {
 public:
  BlockingReplay(const Program& program, const Execution& run, const ThreadWalk& walk)
      : program_(program), run_(run), walk_(walk) {}

  // Labels that cover [begin, end), a part of the time in which `op`, which began at `start`,
  // was awaited; `pieces` is its launch chain since `begin`. None: no blocking call is behind it.
  std::vector<LabelledSpan> replay(std::span<const Piece> pieces, Ns begin, Ns end, uint32_t op,
                                   Ns start);

  // The host is ahead of the device again: nothing that follows is the call's doing.
  void recovered() { thread_ = kNone; }

 private:
  struct Shift {
    Ns from_ns;
    Ns by_ns;
  };

  Ns host_replayed(std::span<const Piece> pieces, Ns since,
                   std::vector<LabelledSpan>* replayed) const;
  Ns blocking_end(const Piece& piece, Ns at) const;
  Ns shift_at(Ns time) const;

  const Program& program_;
  const Execution& run_;
  const ThreadWalk& walk_;
  // The call that is being charged; thread_ is kNone if there is none.
  uint32_t thread_ = kNone;
  uint32_t segment_ = kNone;
  Ns begin_ns_ = 0;            // of the first gap charged to it
  std::vector<Shift> shifts_;  // by how much the device would be earlier, from when on
};

}  // namespace idlescope::simulate
