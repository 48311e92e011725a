// What the user asked for: the only place of the recorder that reads the environment.
//
// In: IDLESCOPE_* and the rank variables of launchers. Out: a plain struct, read once by the
// library's constructor before the job has threads. A value that makes no sense is replaced
// by the default and named in `complaint`, for the one line on stderr.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/process_identity.h"

namespace idlescope::session {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

struct Options {
  bool disabled;               // IDLESCOPE_DISABLE=1
  bool output_was_set;         // by the launcher or the user; else it is made up here
  char output[4096];           // IDLESCOPE_OUTPUT, absolute; %h %p %r %q{VAR} filled in
  emit::HeaderOptions header;  // window, budget, max size, detail, ranks
  bool rank_selected;          // IDLESCOPE_RANKS names this rank, or none at all
  int64_t duration_ns;         // IDLESCOPE_DURATION; 0: no limit
  uint64_t steps;              // IDLESCOPE_STEPS; 0: no limit
  bool append_sink;            // IDLESCOPE_SINK=append: never map the file
  bool sample_frames;          // IDLESCOPE_FRAMES=0 turns Python frame samples off
  LogLevel log;                // IDLESCOPE_LOG
  bool detach_graphs_held;     // IDLESCOPE_EXPERIMENT=graph-detach-held (docs/decisions/001)
  emit::RankFacts ranks;
  char complaint[256];  // "IDLESCOPE_WINDOW=ful": empty when all is well
};

inline constexpr uint64_t kDefaultMaxSizeBytes = uint64_t{2} * 1000 * 1000 * 1000;
inline constexpr double kDefaultBudget = 0.01;

// Reads getenv. `arguments` are the process's own, for the default directory name.
void read_options(Options* out, int argument_count, char* const* arguments);

// The options of this process; valid after the constructor ran.
Options& options();

// "2GB", "500M", "1048576" in bytes (k, M, G, T; powers of 1000, "KiB" style of 1024).
bool parse_bytes(const char* text, uint64_t* out);
// "90", "3m", "1.5h", "250ms" in nanoseconds (units as timeout(1), and ms).
bool parse_duration(const char* text, int64_t* out);
// "0,8,16-23" into ranks; false on nonsense or too many.
bool parse_ranks(const char* text, int32_t* out, size_t capacity, size_t* count);
// "auto", "full", "off", "START+LENGTH".
bool valid_window(const char* text);

// idlescope-SCRIPT-MMDD-HHMMSS, under Slurm idlescope-SCRIPT-JOBID.STEP; SCRIPT is the first
// argument that names a script or module, else the program.
void default_directory_name(char* out, size_t capacity, int argument_count, char* const* arguments,
                            int64_t realtime_s, const char* job_id);

}  // namespace idlescope::session
