// Constants of the simulated machine: what CUDA calls, copies and wake-ups cost. Orders of
// magnitude are those measured on an H200 (docs/simulator.md, "Constants"); each seed draws
// its own machine around them.
#pragma once

#include "analysis/simulate/draws.h"

namespace idlescope::simulate {

struct Machine {
  Ns launch_call_ns = 4500;     // host time of one kernel launch
  Ns launch_latency_ns = 6500;  // begin of the call to begin of the op, idle stream
  Ns dispatch_gap_ns = 1100;    // end of an op to begin of the next on its stream
  Ns event_gap_ns = 2200;       // the same across streams, through an event
  Ns graph_gap_ns = 700;        // between nodes of one graph launch
  Ns sync_return_ns = 9000;     // end of the awaited op to return of the call
  Ns sync_call_ns = 2500;       // a sync that has nothing to wait for
  Ns small_call_ns = 600;       // event record, stream wait, query
  Ns wake_ns = 45000;           // flag set to waiter running (queue, futex, GIL)
  Ns hand_over_ns = 12000;      // main thread to autograd thread and back
  Ns record_call_ns = 900;      // what recording one call costs inside a window
  int64_t queue_depth = 1024;   // launches accepted ahead of the device, per stream
  int64_t pinned_mb_s = 53000;  // H2D and D2H, large copies
  int64_t pageable_mb_s = 9000;
  int64_t memcpy_mb_s = 11000;   // host to pinned host, one thread
  Ns copy_setup_ns = 1600;       // fixed part of a copy's duration
  Ns pageable_setup_ns = 14000;  // staging start-up
  int64_t worker_cores = 14;     // cores left for loader workers
  int64_t cores = 16;
  int32_t sm_count = 132;
};

// A machine near the default one.
Machine draw_machine(const Draws& draws);

// Duration of a copy of `bytes` at `mb_s` (1e6 bytes a second) and a fixed part.
Ns copy_ns(uint64_t bytes, int64_t mb_s, Ns setup_ns);

}  // namespace idlescope::simulate
