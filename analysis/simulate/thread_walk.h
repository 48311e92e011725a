// Walks a host thread backwards from a launch and names each piece of time by what the
// thread was doing or waiting for: the true constraint, read from the run's own log.
//
// A wait for another thread of the same rank (autograd) continues in that thread. A wait in
// next() for batch k is cut by where batch k was: in its worker, in the feeder's pickle or
// pipe, at the pin thread, ready.
#pragma once

#include <vector>

#include "analysis/simulate/engine.h"

namespace idlescope::simulate {

struct Piece {
  enum class Kind : uint8_t { kPlain, kBatch, kBlocking };
  Ns begin_ns = 0;
  Ns end_ns = 0;
  Leaf leaf = report::LEAF_UNSPECIFIED;
  Kind kind = Kind::kPlain;
  uint32_t thread = kNone;
  uint32_t segment = kNone;
  uint32_t batch = kNone;  // kBatch
  Ns ready_ns = 0;         // kBatch: when the batch could be taken
  Ns full_begin_ns = 0;    // of the segment, before clipping
};

class ThreadWalk {
 public:
  ThreadWalk(const Program& program, const Execution& run);

  // Pieces that cover [stop, cursor), earliest first.
  std::vector<Piece> back(uint32_t thread, Ns cursor, Ns stop) const;

  // Pieces that cover [begin, end) and end with the launch of `op`: what its host thread did
  // or waited for, the call itself, and the latency until `op` began at `end`.
  std::vector<Piece> launch_chain(uint32_t op, Ns begin, Ns end) const;

  // Where `batch` was during [begin, end).
  std::vector<Piece> batch_stages(uint32_t batch, Ns begin, Ns end) const;

  // Last op that a blocking segment waited for; kNone: none.
  uint32_t awaited_op(uint32_t thread, uint32_t segment) const;

 private:
  void segment_pieces(uint32_t thread, uint32_t segment, Ns from, Ns to,
                      std::vector<Piece>* reversed) const;
  void worker_pieces(uint32_t thread, Ns begin, Ns end, std::vector<Piece>* out) const;

  const Program& program_;
  const Execution& run_;
  std::vector<uint32_t> batch_of_flag_;
};

}  // namespace idlescope::simulate
