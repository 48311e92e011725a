// Device and host constants that attribution needs, measured from the trace itself.
//
// In: the ops and calls of one device timeline. Out: Constants; each has a fall-back for
// traces with fewer than 20 samples and is clamped to what hardware can do (section 0 and
// amendment A1.3). Sampling is by stride, so the cost is bounded for long traces.
#pragma once

#include <cstdint>

#include "analysis/model/model.h"

namespace idlescope::diagnose {

struct Constants {
  int64_t launch_latency_ns = 6'000;       // ℓ: call begin to op begin on an empty stream, p10
  int64_t dispatch_ns = 1'000;             // γ: gap between queued ops of one stream, median
  int64_t sync_return_ns = 20'000;         // r: awaited op end to return of the sync, median
  int64_t launch_interval_ns = 10'000;     // Δ: between launches inside bursts, median
  int64_t burst_ns = 80'000;               // θ = min(max(50 us, 8 Δ), 200 us)
  double pinned_bytes_per_ns[2] = {0, 0};  // p90 of copies ≥ 4 MiB: H2D, D2H; 0: none seen
  double pageable_bytes_per_ns[2] = {0, 0};

  // The longest wait of a queued op that still is the device's own doing.
  static constexpr int64_t kLatencyMax = 15'000;
};

Constants measure_constants(const model::Model& model, const model::DeviceTimeline& device);

}  // namespace idlescope::diagnose
