#include "profiler/cuda/cupti_versions.h"

#include <cstddef>

namespace idlescope::cuda {
namespace {

constexpr VersionFacts kRows[] = {
    // Before CUDA 12.0: other record layouts, never tested here.
    {0, false, false, false, false},
    // 12.0 to 12.5: finalize crashed applications that used graphs (fixed in 12.4 Update 1 and
    // 12.6; pytorch PR#112507, #146604). Kineto tears down by default from 12.6 only.
    {19, true, true, false, false},
    // 12.6 to 12.9: Kineto's default is to tear down; graphs not tested here, so not trusted.
    {24, true, true, false, false},
    // 13.0: after a finalize the next replay of a graph that had been launched in the window
    // failed with cudaErrorLaunchFailure (H200, docs/overhead.md).
    {130000, true, true, false, false},
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
