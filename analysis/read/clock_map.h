// Puts device records that carry CUPTI's own clock on CLOCK_MONOTONIC.
//
// In: a Process whose windows say CLOCK_CUPTI and whose clock pairs tie the two clocks. Out:
// the same with op times mapped: a constant offset from one pair, linear between two. Host
// calls come from our callbacks and are on CLOCK_MONOTONIC already.
#pragma once

#include "analysis/read/recording.h"

namespace idlescope::read {

// Call before arrange (times change). Windows without a pair stay as they are and keep
// CLOCK_CUPTI in Window.begin; all mapped ones say CLOCK_MONOTONIC_HOST afterwards.
// Returns how many records it left out because they would leave what a time can be.
uint64_t map_device_clock(Process& process);

}  // namespace idlescope::read
