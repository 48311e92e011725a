// What one device was given to do, in the order in which the host launched it (C1).
//
// In: the ops of one device. Out: one element per launch, as a token: kind, kernel family
// without template arguments and digits, size in powers of two. All nodes of one graph launch
// are one element. Steps, phases and rhythms are found in this sequence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/model/device_timeline.h"

namespace idlescope::model {

struct Launched {
  Ns launch_ns;
  uint32_t token;
  uint32_t thread;
  bool optimizer;
  bool graph;
  bool comm = false;  // a collective
  uint64_t ops = 1;   // of a graph launch: its nodes
  Ns device_ns = 0;   // of all of them
};

// By the begin of ops where the host ran so far ahead that most launches lie before the window.
std::vector<Launched> launch_order(const read::Recording& recording, const read::Process& process,
                                   const DeviceTimeline& device, bool on_device);

// Kernel name without template arguments and digits: one family of variants.
std::string kernel_family(std::string_view name);

bool is_optimizer_kernel(std::string_view name);

}  // namespace idlescope::model
