// How fast collectives are: algorithm and bus bandwidth.
//
// In: the passes of all devices and which one the report is about. Out: one row per kind of
// collective with known size and ranks. Bus bandwidth as nccl-tests defines it
// (NVIDIA/nccl-tests, doc/PERFORMANCE.md): bytes / time times a factor that makes it the rate
// of the links whatever the number of ranks n:
//
//   AllReduce                              2 (n - 1) / n
//   ReduceScatter, AllGather, AlltoAll       (n - 1) / n
//   Broadcast, Reduce, SendRecv               1
//
// Bytes are those of the larger side of a rank, input or output, as recorded. The time is that of
// the rank that waited least (B5); with one rank's records it holds waiting, and the rates are
// lower limits.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/diagnose/device_pass.h"

namespace idlescope::diagnose {

// 0: a collective without a rule.
double bus_factor(std::string_view name, uint32_t ranks);

std::vector<CollectiveSummary> summarize_collectives(const model::Model& model,
                                                     const std::vector<DevicePass*>& passes,
                                                     uint32_t chosen);

}  // namespace idlescope::diagnose
