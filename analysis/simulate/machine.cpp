#include "analysis/simulate/machine.h"

namespace idlescope::simulate {

Machine draw_machine(const Draws& draws) {
  constexpr uint64_t kMachine = 0x6D61;
  Machine m;
  auto near = [&](auto& value, int64_t percent, uint64_t what) {
    value = draws.uniform(value * (100 - percent) / 100, value * (100 + percent) / 100,
                          key(kMachine, what));
  };
  near(m.launch_call_ns, 25, 1);
  near(m.launch_latency_ns, 20, 2);
  near(m.dispatch_gap_ns, 30, 3);
  near(m.event_gap_ns, 20, 4);
  near(m.graph_gap_ns, 30, 5);
  near(m.sync_return_ns, 50, 6);
  near(m.wake_ns, 50, 7);
  near(m.hand_over_ns, 40, 8);
  near(m.record_call_ns, 30, 9);
  near(m.pinned_mb_s, 15, 10);
  near(m.pageable_mb_s, 30, 11);
  near(m.memcpy_mb_s, 25, 12);
  // A kernel cannot begin before its launch call has handed it over.
  if (m.launch_latency_ns < m.launch_call_ns) m.launch_latency_ns = m.launch_call_ns + 500;
  return m;
}

Ns copy_ns(uint64_t bytes, int64_t mb_s, Ns setup_ns) {
  return setup_ns + scale(static_cast<int64_t>(bytes), 1000, mb_s);
}

}  // namespace idlescope::simulate
