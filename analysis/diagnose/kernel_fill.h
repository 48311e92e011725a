// How full the device is while it computes (A3): an upper bound from launch shapes.
//
// In: op descriptors and device limits. Out: per descriptor the share of the SMs that its
// blocks can reach, its waves, and whether it is fp32 matrix work. A full grid does not
// prove high use (memory-bound kernels fill the grid too), a small one proves low use.
//
//   W = blocks / (SMs · blocks per SM)    W < 1: underfilled, wasted = t·(1 − blocks/SMs)
//                                         W ≥ 1: tail,        wasted = t·(1 − W/⌈W⌉)
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/model/model.h"

namespace idlescope::diagnose {

struct KernelFill {
  double fill = -1;  // min(1, blocks / SMs); −1: unrated
  double waves = 0;
  bool fp32_matrix = false;
};

// Occupancy limit of blocks a SM can hold; 0: not enough is known.
double blocks_per_sm(const read::OpDescriptor& kernel, const trace::Device& device);

// Matrix multiplication or convolution, by its name.
bool is_matrix_kernel(std::string_view name);
bool is_fp32_matrix(std::string_view kernel_name);

// Per op descriptor of the process.
std::vector<KernelFill> rate_kernels(const model::Model& model,
                                     const model::DeviceTimeline& device);

}  // namespace idlescope::diagnose
