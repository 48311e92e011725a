// Fuzzes the native reader.
#include "analysis/read/trace_reader.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/check_recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return idlescope::test::check_reader(data, size, idlescope::read::read_trace);
}
