#include "profiler/host/host_events.h"

#include <atomic>

#include "profiler/host/process_counters.h"

namespace idlescope::host {
namespace {

void ignore_step(int64_t, bool) {}
void ignore(bool) {}

Listener the_listener{ignore_step, ignore, ignore, ignore, false};
std::atomic<uint64_t> steps{0};
std::atomic<uint32_t> steps_generation{0};

}  // namespace

void set_listener(const Listener& listener) { the_listener = listener; }
const Listener& listener() { return the_listener; }

uint64_t step_count() {
  return steps_generation.load(std::memory_order_relaxed) == emit::file_generation()
             ? steps.load(std::memory_order_relaxed)
             : 0;
}

void step_ended(int64_t now_ns, int64_t source, uint32_t label) {
  const uint32_t generation = emit::file_generation();
  if (steps_generation.load(std::memory_order_relaxed) != generation) {
    steps.store(0, std::memory_order_relaxed);  // a forked child counts its own steps
    steps_generation.store(generation, std::memory_order_relaxed);
  }
  const uint64_t number = steps.fetch_add(1, std::memory_order_relaxed) + 1;
  write_event({.kind = EventKind::kStep,
               .begin_ns = now_ns,
               .end_ns = now_ns,
               .a = source,
               .b = static_cast<int64_t>(number),
               .c = label});
  the_listener.step(now_ns, false);
  if (!has_sampling_thread()) sample_process_counters(now_ns);
}

void batch_delivered(int64_t now_ns) {
  the_listener.step(now_ns, true);
  if (!has_sampling_thread()) sample_process_counters(now_ns);
}

}  // namespace idlescope::host
