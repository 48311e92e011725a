// Fuzzes the PyTorch profiler importer.
#include "analysis/read/kineto_json.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/check_recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return idlescope::test::check_reader(data, size, idlescope::read::import_kineto);
}
