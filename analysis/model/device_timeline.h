// What each GPU did, in time order: the ops of one device of one process.
//
// In: a read::Recording whose times are on one clock (clock_map.h). Out: per (process,
// device) the indices of its ops by begin, and the spans that windows of the recorder
// cover. All streams are merged: a device is idle only where none of its streams works.
//
//   stream 7   ████      ██            ops of all streams in one order; a gap is what
//   stream 13     ███       ███        is left of the union:  ███████░░░████████
//
// Invariants: `ops` is sorted by (begin, end); windows are disjoint and in time order;
// every op lies in exactly one window span's [first, last).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::model {

using read::kNone;
using read::Ns;

// What an op means for the question "does the device compute?" (N5, amendment A1.2).
enum class Work : uint8_t {
  kCompute,  // kernels, whole graph launches
  kMemory,   // memset, copy inside one device
  kCopy,     // between host and device
  kComm,     // collectives, copies between devices
};

// `nccl` counts with or without a "Kernel" suffix: ncclDevKernel_* as well as the older
// ncclKernel_*; RCCL uses the same names.
bool is_comm_kernel(std::string_view name);

struct WindowSpan {
  uint32_t window = kNone;  // Process::windows; kNone: the source knows no windows
  Ns begin_ns = 0;
  Ns end_ns = 0;     // of the window or its last op, whichever is later
  size_t first = 0;  // range in DeviceTimeline::ops
  size_t last = 0;
};

struct DeviceTimeline {
  uint32_t process = 0;       // Recording::processes
  uint32_t device = 0;        // Process::devices; kNone: the source names no device
  std::vector<uint32_t> ops;  // Process::ops
  std::vector<WindowSpan> windows;
  // Another process of the recording worked on the same GPU at the same time.
  bool shared = false;
};

// Per op descriptor of the process.
std::vector<Work> classify_work(const read::Recording& recording, const read::Process& process);

std::vector<DeviceTimeline> build_device_timelines(const read::Recording& recording);

}  // namespace idlescope::model
