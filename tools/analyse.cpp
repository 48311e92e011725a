#include "tools/analyse.h"

#include <utility>

#include "analysis/diagnose/diagnose.h"
#include "analysis/read/read.h"
#include "analysis/report/build.h"

namespace idlescope::tools {

read::Expected<report::Report> analyse(const std::vector<std::string>& paths) {
  read::Expected<read::Recording> recording = read::read_paths(paths);
  if (!recording) return tl::unexpected(std::move(recording.error()));
  const diagnose::Analysis analysis = diagnose::analyze(std::move(*recording));
  return report::build(analysis.diagnosis, analysis.model.recording);
}

}  // namespace idlescope::tools
