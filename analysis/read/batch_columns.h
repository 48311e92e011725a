// Columns of a batch in the one form that the rest of the reader knows.
//
// In: a GpuOpBatch, HostCallBatch or OverheadBatch as parsed, of any minor format, possibly
// damaged. Out: the same with begin_delta_ns and duration_ns (trace.proto, GpuOpBatch), or
// with overheads as messages. Columns of unequal length stay unequal.
#pragma once

#include <algorithm>
#include <cstdint>

#include "proto/trace.pb.h"

namespace idlescope::read {

inline constexpr uint32_t kKindsOfABatch = 1024;

template <typename Batch>
void use_plain_times(Batch& batch) {
  // Unsigned: damaged columns may wrap, which must not be undefined.
  if (batch.duration_ns().empty() && !batch.duration_change_ns().empty()) {
    const int size = std::min(batch.descriptor_id_size(), batch.duration_change_ns_size());
    uint64_t last[kKindsOfABatch] = {};
    batch.mutable_duration_ns()->Reserve(size);
    for (int i = 0; i < size; ++i) {
      uint64_t& duration = last[batch.descriptor_id(i) % kKindsOfABatch];
      duration += static_cast<uint64_t>(batch.duration_change_ns(i));
      batch.mutable_duration_ns()->AddAlreadyReserved(duration);
    }
  }
  if (batch.begin_delta_ns().empty() && !batch.gap_change_ns().empty()) {
    const int size = std::min(
        {batch.descriptor_id_size(), batch.gap_change_ns_size(), batch.duration_ns_size()});
    uint64_t last[kKindsOfABatch] = {};
    uint64_t duration = 0;  // of the one before
    batch.mutable_begin_delta_ns()->Reserve(size);
    for (int i = 0; i < size; ++i) {
      uint64_t& gap = last[batch.descriptor_id(i) % kKindsOfABatch];
      gap += static_cast<uint64_t>(batch.gap_change_ns(i));
      batch.mutable_begin_delta_ns()->AddAlreadyReserved(static_cast<int64_t>(gap + duration));
      duration = batch.duration_ns(i);
    }
  }
}

// False: the columns are not of equal length; what is there in full is kept.
inline bool use_plain_overheads(trace::OverheadBatch& batch) {
  const auto [size, longest] =
      std::minmax({batch.kind_size(), batch.thread_id_size(), batch.gap_ns_size(),
                   batch.duration_ns_size(), batch.correlation_delta_size()});
  uint64_t at = static_cast<uint64_t>(batch.base_ns());
  uint32_t correlation = 0;
  for (int i = 0; i < size; ++i) {
    trace::Overhead* one = batch.add_overhead();
    one->set_kind(batch.kind(i));
    one->set_thread_id(batch.thread_id(i));
    at += static_cast<uint64_t>(batch.gap_ns(i));
    one->set_begin_ns(static_cast<int64_t>(at));
    at += batch.duration_ns(i);
    one->set_end_ns(static_cast<int64_t>(at));
    correlation += static_cast<uint32_t>(batch.correlation_delta(i));
    one->set_correlation_id(correlation);
  }
  batch.clear_base_ns();
  batch.clear_kind();
  batch.clear_thread_id();
  batch.clear_gap_ns();
  batch.clear_duration_ns();
  batch.clear_correlation_delta();
  return size == longest;
}

}  // namespace idlescope::read
