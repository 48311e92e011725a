// Puts all times of a recording on one clock and repairs small skew of device clocks.
//
// In: a Recording as read. Out: the same with shifted times, and what was done.
//
// 1. Processes of other hosts (or boots) have another CLOCK_MONOTONIC; they are moved by
//    the difference of (realtime - monotonic) to the clock of the first process.
// 2. N1: a device op may not start before its launch call begins, nor end after a sync
//    that awaited it returned. Per device the smallest shift that satisfies both, constant
//    between points where the device is drained (so the order on streams survives):
//
//      launch   ├──┤                                    ├────── sync ──────┤
//      op     ███████  starts 3 us before its launch: shift by +3;  ███████│ must end here
//
// Invariant: the order of op begins is kept; shifts stay below kMaxShift.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::model {

struct ClockFit {
  read::Ns largest_shift_ns = 0;  // absolute, N1
  uint64_t violations = 0;        // ops that still break a bound by more than 1 us
  uint64_t checked = 0;
  bool other_hosts = false;  // processes were moved between hosts' clocks
};

ClockFit fit_clocks(read::Recording& recording);

}  // namespace idlescope::model
