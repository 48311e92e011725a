// What a CUPTI version can be trusted with, in one table.
//
// In: cuptiGetVersion(). Out: may we detach from a running job, attach again, and what holds
// once CUDA graphs were seen. Each row says where it comes from; docs/decisions/ has the
// reasoning, docs/overhead.md what was measured here.
#pragma once

#include <cstdint>

namespace idlescope::cuda {

// When a job that uses CUDA graphs may be detached from.
enum class GraphDetach : uint8_t {
  kNever,     // stay attached to the end of the process
  kWhileHeld  // only while its launching thread is held and the device is idle
};

struct VersionFacts {
  uint32_t first;  // smallest cuptiGetVersion() of the row
  bool usable;     // records can be decoded
  bool finalize;   // cuptiFinalize of a running eager job
  GraphDetach graphs;
  bool reattach_with_graphs;  // a second attach after such a finalize
};

// The row with the largest `first` that is not above the version.
VersionFacts version_facts(uint32_t cupti_version);

}  // namespace idlescope::cuda
