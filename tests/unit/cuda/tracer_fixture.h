// The tracer over the fake CUPTI, for all of its tests: one attach is one window, and what was
// written is in packets_ (recorded_packets.h).
#pragma once

#include <memory>
#include <set>
#include <utility>

#include "profiler/cuda/tracer.h"
#include "tests/fake_cupti/fake_cupti.h"
#include "tests/unit/cuda/recorded_packets.h"

namespace idlescope::cuda {

inline constexpr int64_t kMs = 1'000'000;

class TracerTest : public WithPackets {
 protected:
  void SetUp() override {
    WithPackets::SetUp();
    fake_cupti::reset();
    set_cupti_for_test(&fake_cupti::table());
    tracer_ = std::make_unique<Tracer>(&record_packet, &record_name);
  }
  void TearDown() override {
    if (tracer_->attached()) detach();
    set_cupti_for_test(nullptr);
    WithPackets::TearDown();
  }
  AttachOutcome attach(uint32_t window = 1) {
    AttachRequest request = {};
    request.window_id = window;
    request.reason = "test";
    return tracer_->attach(request);
  }
  DetachOutcome detach(bool finalize = true, int64_t wait_ns = 20 * kMs) {
    DetachRequest request = {};
    request.finalize = finalize;
    request.wait_ns = wait_ns;
    request.reason = "test";
    return tracer_->detach(request);
  }
  std::unique_ptr<Tracer> tracer_;
};

// Every device op has a call of the same (window, correlation id).
inline void expect_joined(const RecordedPackets& packets) {
  std::set<std::pair<uint32_t, uint32_t>> calls;
  for (const CallRow& call : packets.calls()) calls.insert({call.window, call.correlation});
  for (const OpRow& op : packets.ops()) {
    if (calls.count({op.window, op.correlation}) != 0) continue;
    const auto next = calls.upper_bound({op.window, op.correlation});
    ADD_FAILURE() << "window " << op.window << " correlation " << op.correlation << ", next "
                  << (next == calls.end() ? 0 : next->first) << ":"
                  << (next == calls.end() ? 0 : next->second);
  }
}

}  // namespace idlescope::cuda
