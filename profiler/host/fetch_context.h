// What the running fetch on this thread belongs to; one per thread, set by the snippet.
#pragma once

#include <cstdint>

namespace idlescope::host {

struct FetchContext {
  uint32_t iterator;
  uint32_t epoch;
  int64_t batch;
  int64_t worker;        // −1: in the main process (num_workers = 0)
  int64_t fetch_end_ns;  // of the last fetch
  int64_t collate_ns;    // of the running fetch
};

FetchContext& fetch_context();

}  // namespace idlescope::host
