// What the user asked `record` for, and its translation for the recorder.
//
// In: the flags as typed. Out: IDLESCOPE_* settings for the job's environment, in one
// plain form each (seconds, bytes, fractions), or a sentence about what is wrong. A flag
// that was not given leaves the user's own IDLESCOPE_* variable alone.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "tools/job_environment.h"
#include "tools/job_identity.h"

namespace idlescope::tools {

struct RecordOptions {
  std::string output;
  bool force = false;
  std::string duration;
  std::string steps;
  std::string ranks;
  std::string window;
  std::string budget;
  std::string max_size;
  std::string detail;
  std::string lang;
  bool stop_job = false;
  bool no_report = false;
  bool quiet = false;
  bool verbose = false;
};

inline constexpr const char kDefaultMaxSize[] = "2GB";

struct RecordPlan {
  Settings settings;            // without IDLESCOPE_OUTPUT
  uint64_t max_size_bytes = 0;  // of the whole directory
  double stop_after_s = 0;      // --stop-job with -d; 0: never
  uint64_t stop_after_steps = 0;
  bool records_this_rank = true;
  bool speaks = true;  // one rank talks, the others are silent
};

tl::expected<RecordPlan, std::string> plan_recording(const RecordOptions& options,
                                                     const JobIdentity& identity,
                                                     const Environment& environment);

}  // namespace idlescope::tools
