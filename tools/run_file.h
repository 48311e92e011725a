// run.json of a recording directory: the command, the versions and how the job ended.
//
// Rank 0 (or the only process) writes run.json, rank N run-N.json. Written to a temporary
// name and renamed, so that a reader never sees half of it.
#pragma once

#include <string>
#include <string_view>

#include "tools/job_identity.h"

namespace idlescope::run {
class Run;
}

namespace idlescope::tools {

std::string run_file_name(const JobIdentity& identity);
bool is_run_file_name(std::string_view name);

// False: it could not be written (errno says why).
bool write_run_file(const std::string& path, const run::Run& run);

// True if the directory has a run file of that job that is not known to have ended: another
// rank of the same job writes there.
bool is_run_of_job(const std::string& directory, const std::string& job_id);

// True if `record` started a job on this host that writes there and has not ended yet.
bool is_still_running(const std::string& directory);

// protobuf strings are UTF-8; command lines need not be. Bad bytes become U+FFFD.
std::string to_utf8(std::string_view bytes);

}  // namespace idlescope::tools
