// The recordings that the properties are tested on: simulated jobs of many mechanisms and the
// real ones of tests/golden/real. And their report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "proto/report.pb.h"
#include "tests/properties/packets.h"

namespace idlescope::test {

// Name, then content, as recorded.
using Files = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> simulated_names();
std::vector<std::string> real_names();
Files files_of(const std::string& name);

struct Answer {
  bool read = false;  // else `fault` says why not
  std::string fault;
  report::Report report;
};

// Report on files of these names and contents, from a folder of its own.
Answer answer_to(const Files& files);

// Names as tests may have them.
std::string test_name(const std::string& recording);

}  // namespace idlescope::test
