// The whole analyzer on any bytes: reader or importer, model, diagnosis, report, renderers.
//
// Whatever the input, it ends in a report or a fault; never a crash, a sanitizer report, a
// hang or a leaf that is counted twice (the analyzer checks its own sums).
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "analysis/diagnose/diagnose.h"
#include "analysis/read/read.h"
#include "analysis/report/build.h"
#include "analysis/report/json.h"
#include "analysis/report/text.h"

namespace {

// Readers take paths: a nameless file in memory has one.
std::string path_of(const uint8_t* data, size_t size) {
  static const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace idlescope;
  read::Expected<read::Recording> recording = read::read_paths({path_of(data, size)});
  if (!recording) return recording.error().text().empty() ? 1 : 0;
  const diagnose::Analysis analysis = diagnose::analyze(std::move(*recording));
  const report::Report report = report::build(analysis.diagnosis, analysis.model.recording);
  if (report::render_text(report, {}).empty() || report::to_json(report).empty()) std::abort();
  return 0;
}
