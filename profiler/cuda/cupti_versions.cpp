#include "profiler/cuda/cupti_versions.h"

#include <cstddef>

namespace idlescope::cuda {
namespace {

constexpr VersionFacts kRows[] = {
    // Before CUDA 12.0: other record layouts, never tested here.
    {0, false, false, GraphDetach::kNever, false},
    // 12.0 to 12.5: finalize crashed applications that used graphs (fixed in 12.4 Update 1 and
    // 12.6; pytorch PR#112507, #146604). Kineto tears down by default from 12.6 only.
    {19, true, true, GraphDetach::kNever, false},
    // 12.6 to 12.9: graphs not tested here, so not trusted.
    {24, true, true, GraphDetach::kNever, false},
    // 13.0: a finalize while graphs are launched ends the job with cudaErrorLaunchFailure, also
    // from an API-exit callback (H200, docs/overhead.md). With launches paused and the device
    // idle it worked three times out of three, so kWhileHeld is the candidate; it is not used
    // before the whole path has run on a GPU (docs/decisions, graphs).
    {130000, true, true, GraphDetach::kNever, true},
};

}  // namespace

VersionFacts version_facts(uint32_t cupti_version) {
  size_t row = 0;
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; ++i) {
    if (kRows[i].first <= cupti_version) row = i;
  }
  return kRows[row];
}

}  // namespace idlescope::cuda
