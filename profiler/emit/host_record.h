// One host event as it lies in the mapped file: 64 bytes, little endian.
//
// The layout is part of the contract (proto/README.md, "Host chunks"); kinds and the
// meaning of a, b, c are trace.proto's HostEventKind. Written by application threads: fill
// everything but `commit`, then store the kind into `commit` with release order. Nothing
// here allocates, locks or throws.
#pragma once

#include <atomic>
#include <cstdint>

namespace idlescope::emit {

struct HostRecord {
  std::atomic<uint32_t> commit;  // HostEventKind; 0 = not committed
  uint32_t thread_id;
  int64_t begin_ns;              // CLOCK_MONOTONIC
  int64_t end_ns;                // instants: equal to begin_ns
  uint32_t iterator;             // 0: none
  uint32_t epoch;
  int64_t batch;                 // -1: none
  int64_t a;
  int64_t b;
  int64_t c;
};
static_assert(sizeof(HostRecord) == 64, "the wire layout is 64 bytes");
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace idlescope::emit
