// Many scores to the numbers of docs/accuracy.md, as JSON and as a table.
#pragma once

#include <string>
#include <vector>

#include "tests/accuracy/score.h"

namespace idlescope::accuracy {

struct ClassScore {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  double weight = 0;  // true share
};

std::vector<ClassScore> class_scores(const Confusion& confusion);
double macro_f1(const Confusion& confusion);

std::string to_json(const std::string& set, const std::vector<Score>& scores);
std::string to_table(const std::vector<Score>& scores);
// The worst recordings, one a line.
std::string failures(const std::vector<Score>& scores);

}  // namespace idlescope::accuracy
