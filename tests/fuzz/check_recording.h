// What every reader promises of a Recording, whatever bytes it came from.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "analysis/read/recording.h"
#include "tests/unit/read/describe.h"

namespace idlescope::test {

// One input of libFuzzer through `reader(bytes, path, recording)`: a Fault, or a Recording that
// keeps its promises. Anything else ends the program.
template <typename Reader>
int check_reader(const uint8_t* data, size_t size, const Reader& reader) {
  read::Recording recording;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!reader(bytes, std::string("fuzz"), recording)) return 0;
  for (const read::Process& process : recording.processes) {
    const std::string broken = broken_invariant(process);
    if (!broken.empty()) {
      std::fprintf(stderr, "%s\n", broken.c_str());
      std::abort();
    }
  }
  return 0;
}

}  // namespace idlescope::test
