#include "profiler/session/recording_limits.h"

#include <atomic>

#include "profiler/host/host_events.h"
#include "profiler/session/device_session.h"
#include "profiler/session/entry.h"

namespace idlescope::session {
namespace {

uint64_t step_limit = 0;  // 0: none
int64_t deadline_ns = INT64_MAX;
std::atomic<uint64_t> batches{0};

}  // namespace

void start_limits(const Options& options, int64_t now_ns) {
  step_limit = options.steps;
  if (options.duration_ns > 0) deadline_ns = now_ns + options.duration_ns;
}

void step_seen(int64_t now_ns, bool from_loader) {
  on_step(now_ns, from_loader);
  if (step_limit == 0 && deadline_ns == INT64_MAX) return;
  if (from_loader) batches.fetch_add(1, std::memory_order_relaxed);
  const uint64_t marked = host::step_count();
  const uint64_t steps = marked != 0 ? marked : batches.load(std::memory_order_relaxed);
  const bool enough = step_limit != 0 && steps >= step_limit;
  if (enough || now_ns >= deadline_ns) finish_job();
}

}  // namespace idlescope::session
