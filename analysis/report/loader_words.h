// What the loader does and what limits it, in sentences and as a number of workers.
//
// In: Context (loader summary, limiter). Out: sentences after a DATA split; the smallest
// number of workers that keeps up with the GPU. Used by sentences and by fixes.
#pragma once

#include <optional>
#include <vector>

#include "analysis/report/context.h"

namespace idlescope::report {

std::vector<Text> loader_sentences(const Context& context);

// True when fetching costs a Python call a sample and the samples are small and in memory:
// more workers make such a loader slower (pytorch PR 10260).
bool per_sample_cost(const Context& context);
// True when collate_fn takes most of preparing a batch.
bool collate_bound(const Context& context);
// True when workers mostly sleep: more of them overlap, beyond the number of cores.
bool waits_overlap(const Context& context);

// Smallest w' with fetch_mean / w' <= the part of the step that is not waiting for data,
// with a fifth to spare, bounded by the cores unless the workers mostly wait. Nothing when
// that is not more than now, or the numbers are not known.
std::optional<int> enough_workers(const Context& context);

}  // namespace idlescope::report
