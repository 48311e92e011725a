#include "tools/analyse.h"

#include <utility>

#include "analysis/diagnose/diagnose.h"
#include "analysis/read/read.h"
#include "analysis/report/build.h"
#include "tools/input_paths.h"

namespace idlescope::tools {

read::Expected<report::Report> analyse(const std::vector<std::string>& paths) {
  std::vector<std::string> readable;
  for (const std::string& path : paths) {
    read::Expected<std::string> seekable = seekable_path(path);
    if (!seekable) return tl::unexpected(std::move(seekable.error()));
    readable.push_back(std::move(*seekable));
  }
  read::Expected<read::Recording> recording = read::read_paths(readable);
  if (!recording) return tl::unexpected(std::move(recording.error()));
  const diagnose::Analysis analysis = diagnose::analyze(std::move(*recording));
  return report::build(analysis.diagnosis, analysis.model.recording);
}

}  // namespace idlescope::tools
