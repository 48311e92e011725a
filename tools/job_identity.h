// Which job and which rank this process is, from what a launcher (Slurm, mpirun, torchrun)
// put into the environment. The names are those the recorder reads (trace.proto Process).
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace idlescope::tools {

// getenv, replaceable in tests: null when the variable is not set.
using Environment = std::function<const char*(const char* name)>;
Environment process_environment();

struct JobIdentity {
  std::string job_id;       // "4711.0"; empty: no job launcher
  std::optional<int> rank;  // absent: one process as far as we can tell
  int world_size = 1;
};

JobIdentity identify_job(const Environment& environment);

}  // namespace idlescope::tools
