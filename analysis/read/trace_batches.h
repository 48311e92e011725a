// Decodes the columns of GpuOpBatch and HostCallBatch, the bulk of a trace.
//
// In: serialised batches and resolved tables. Out: ops and calls with indices, unsorted, and
// counts of what could not be used. Ops and calls are independent of each other, so that two
// threads can decode one file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/read/recording.h"
#include "analysis/read/trace_tables.h"

namespace idlescope::read {

struct BatchCounts {
  uint64_t records = 0;              // delivered
  uint64_t undecodable = 0;          // batches
  uint64_t undecodable_offset = 0;   // of the first of them
  uint64_t uneven = 0;               // batches whose columns differ in length
  uint64_t missing_descriptors = 0;  // records
  uint64_t bad_times = 0;            // records
};

// What the first fields of a batch say, without decoding its columns.
struct BatchHead {
  uint32_t window_id = 0;
  Ns base_ns = 0;
};
BatchHead peek_batch(std::string_view body);

void decode_gpu_ops(const std::vector<PacketSlice>& batches, const TraceTables& tables,
                    std::vector<Op>& out, BatchCounts& counts);
void decode_host_calls(const std::vector<PacketSlice>& batches, const TraceTables& tables,
                       std::vector<Call>& out, BatchCounts& counts);

}  // namespace idlescope::read
