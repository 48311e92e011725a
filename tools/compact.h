// Makes finished trace files small: unused room of host chunks goes, the rest is compressed.
//
// In: .istrace files of processes that have ended. Out: the same packets, the Header plain,
// everything else in zstd frames, under the same name (written beside it and renamed). A
// loader worker's file shrinks from its first 64 KiB chunk to what it recorded; a job with
// 16 workers and 100 epochs leaves 1 600 of them.
//
// A file that is cut inside a packet or damaged stays as it is: the reader says so.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <tl/expected.hpp>

namespace idlescope::tools {

struct Compacted {
  uint64_t before_bytes = 0;
  uint64_t after_bytes = 0;
};

enum class CompactError {
  kDamaged,  // not a whole stream of packets
  kFailed,   // read or write error
};
tl::expected<Compacted, CompactError> compact_file(const std::string& path);

// HOST.PID.START.N.istrace; START in clock ticks since boot.
struct TraceFileName {
  std::string host;
  int64_t pid = 0;
  uint64_t start_ticks = 0;
  int image = 0;
};
bool parse_trace_file_name(const std::string& name, TraceFileName* out);

// True if that process runs no more. Only ever true for processes of this host.
bool has_ended(const TraceFileName& name, const std::string& host);

// Compacts, again and again while the job runs, what has ended since the last look.
class Compactor {
 public:
  Compactor(std::string directory, std::string host);
  // Looks through the directory; returns the bytes that were freed.
  uint64_t compact_ended();
  // True after a look that found no process still recording.
  bool all_ended() const { return all_ended_; }

 private:
  void give_back(uint64_t bytes);

  std::string directory_;
  std::string host_;
  std::set<std::string> done_;
  bool all_ended_ = true;
};

}  // namespace idlescope::tools
