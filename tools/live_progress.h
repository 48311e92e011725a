// How far a running recording is, read from its files while they grow.
//
// In: the recording directory. Out: counts of steps, delivered batches, workers and closed
// windows. Reads whole files, so the launcher asks every few seconds and only until it has
// said what it has to say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/compact.h"

namespace idlescope::tools {

struct LiveCounts {
  uint64_t steps = 0;          // optimizer steps; without those, delivered batches
  uint64_t batches_put = 0;    // by loader workers
  uint64_t batches_taken = 0;  // by next()
  uint64_t workers_started = 0;
  uint64_t windows_opened = 0;
  uint64_t windows_closed = 0;
  uint64_t files = 0;

  uint64_t batches_ready() const {
    return batches_put > batches_taken ? batches_put - batches_taken : 0;
  }
};

LiveCounts count_live(const std::string& directory);

// The same for each process by itself, ordered by rank and process id.
struct LiveProcess {
  TraceFileName name;
  LiveCounts counts;
  int32_t rank = -1;  // -1: not one of several
  bool is_main = false;
  uint64_t bytes = 0;

  bool window_open() const { return counts.windows_opened > counts.windows_closed; }
};
std::vector<LiveProcess> live_processes(const std::string& directory);

}  // namespace idlescope::tools
