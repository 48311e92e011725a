// Runs a Program forward in time and keeps, for every op and every piece of every thread,
// when it ran and what bound it. Deterministic: ties are broken by the order of scheduling.
//
// In: Program. Out: Execution, the complete log that truth.h labels and view.h records.
#pragma once

#include <vector>

#include "analysis/simulate/program.h"

namespace idlescope::simulate {

struct Segment {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  uint32_t instruction = 0;  // of its thread; pin threads: Program::pin_items
  Ns locked_until_ns = 0;    // kLaunch: > begin while another thread held the driver lock
};

enum class Bound : uint8_t { kLaunch, kStream, kEvent, kEngine };

struct OpRun {
  Ns begin_ns = -1;
  Ns end_ns = -1;
  Bound bound = Bound::kLaunch;
  uint32_t bound_op = kNone;
  uint32_t thread = kNone;  // launched by this segment
  uint32_t segment = kNone;
  uint32_t order = 0;  // n-th launch of the run
};

struct WindowRun {
  uint16_t rank = 0;
  Ns begin_ns = 0;
  Ns end_ns = 0;
};

struct Execution {
  std::vector<std::vector<Segment>> threads;  // contiguous in time per thread
  std::vector<OpRun> ops;
  std::vector<Ns> flag_ns;  // -1: never set
  std::vector<uint32_t> flag_thread;
  std::vector<Ns> mark_begin_ns;
  std::vector<Ns> mark_end_ns;
  std::vector<uint32_t> mark_thread;
  std::vector<WindowRun> windows;
  Ns end_ns = 0;
  bool complete = false;  // every thread reached its end
};

Execution execute(const Program& program);

}  // namespace idlescope::simulate
