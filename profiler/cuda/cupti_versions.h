// What a CUPTI version can be trusted with, in one table.
//
// In: cuptiGetVersion(). Out: may we detach from a running job, attach again, and what holds
// once CUDA graphs were seen. Each row says where it comes from; docs/decisions/ has the
// reasoning, docs/overhead.md what was measured here.
#pragma once

#include <cstdint>

namespace idlescope::cuda {

struct VersionFacts {
  uint32_t first;             // smallest cuptiGetVersion() of the row
  bool usable;                // records can be decoded
  bool finalize;              // cuptiFinalize of a running eager job
  bool finalize_with_graphs;  // the same once a graph was captured or launched
  bool reattach_with_graphs;  // a second window of such a job
};

// The row with the largest `first` that is not above the version.
VersionFacts version_facts(uint32_t cupti_version);

}  // namespace idlescope::cuda
