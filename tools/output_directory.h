// Where a recording goes: the name of its directory, and making it without overwriting
// anybody's files.
//
// In: -o or IDLESCOPE_OUTPUT (%h host, %p pid, %r rank, %q{VAR}), else a name from the
// script and the time (`idlescope-train-1130-141207`) or from the Slurm job, which is the
// same for all its ranks. Out: an absolute path of a directory that exists.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "tools/job_identity.h"

namespace idlescope::tools {

// "train" for `torchrun --nproc 2 /home/x/train.py`, `python -m pkg.train`, `bash train.sh`.
std::string script_name(const std::vector<std::string>& command);

std::string default_directory_name(const std::vector<std::string>& command,
                                   const JobIdentity& identity, const std::tm& local_time);

// Replaces %h, %p, %r, %q{VAR} and %%. The error is a sentence for the user.
tl::expected<std::string, std::string> expand_pattern(const std::string& pattern,
                                                      const JobIdentity& identity,
                                                      const Environment& environment);

struct OutputDirectory {
  std::string path;      // absolute: the job may change its working directory
  std::string shown;     // as the user would type it
  bool created = false;  // by us, so that it may be removed if the job never started
};

enum class OutputError { kExists, kFailed };
struct OutputFailure {
  OutputError error;
  std::string reason;
};

// An existing empty directory is used. One with content is refused unless `force`, which
// removes the recording in it and nothing else, or unless it belongs to the same job (the
// ranks of a job share one directory).
tl::expected<OutputDirectory, OutputFailure> make_output_directory(const std::string& path,
                                                                   bool force,
                                                                   const JobIdentity& identity);

// Removes the recording's files; other files stay. False: something could not be removed.
bool remove_recording(const std::string& directory);

}  // namespace idlescope::tools
