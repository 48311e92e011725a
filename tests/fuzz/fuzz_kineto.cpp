// Fuzzes the PyTorch profiler importer: any bytes give a Fault or a Recording that keeps its
// promises.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "analysis/read/kineto_json.h"
#include "analysis/read/recording.h"
#include "tests/unit/read/describe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace idlescope;
  read::Recording recording;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!read::import_kineto(bytes, "fuzz", recording)) return 0;
  for (const read::Process& process : recording.processes) {
    const std::string broken = test::broken_invariant(process);
    if (!broken.empty()) {
      std::fprintf(stderr, "%s\n", broken.c_str());
      std::abort();
    }
  }
  return 0;
}
