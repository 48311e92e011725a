// Fuzzes the Nsight Systems importer.
#include "analysis/read/nsys_sqlite.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/check_recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return idlescope::test::check_reader(data, size, idlescope::read::import_nsys);
}
