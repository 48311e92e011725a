// Who this process is, for the Header packet: what other folders tell us, and what /proc
// says when the file is made.
//
// In: options and ranks (session/), Python and torch versions and role (host/). Out: an
// encoded Header packet. Kept in static memory that a forked child inherits; the parts that
// differ in the child (pid, start time) are read anew for each file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/wire_writer.h"

namespace idlescope::emit {

// Process.Role of trace.proto.
enum class Role : uint32_t { kUnknown = 0, kMain = 1, kLoaderWorker = 2, kHelper = 3 };

struct RankFacts {
  bool known;
  int32_t rank;
  int32_t local_rank;
  int32_t world_size;
  char job_id[128];
};

// Options of trace.proto, after defaults.
struct HeaderOptions {
  char window[64];
  double budget;
  uint64_t max_size_bytes;
  char detail[16];
  int32_t ranks[64];
  size_t rank_count;
};

struct ProcessIdentity {
  char host[256];
  char library_path[4096];
  char python_version[32];
  char torch_version[64];
  Role role;
  RankFacts ranks;
  HeaderOptions options;
};

ProcessIdentity& identity();

// Start of this process in clock ticks since boot, the kernel's own number; 0: unknown.
uint64_t process_start_ticks();
// The same as CLOCK_MONOTONIC nanoseconds.
int64_t process_start_ns();
// CPUs this process may use (affinity and cgroup quota, rounded up); 0: unknown.
uint32_t usable_cpus();
// The cgroup's limit in thousandths of a CPU; 0: none or unknown.
uint32_t cgroup_quota_millicpu();

int64_t monotonic_ns();

// Encodes Packet{header}. Reads /proc: only when a file is made.
void write_header_packet(WireWriter& out);

}  // namespace idlescope::emit
