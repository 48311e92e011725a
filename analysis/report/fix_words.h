// A fix as lines of words, the same for every renderer.
//
// In: one Fix of a Report and its place in the ranking. Out: the gain as one sentence: the
// forecast with its range where there is one, else the upper limit, else why there is none.
#pragma once

#include "proto/report.pb.h"

namespace idlescope::report {

// Sentences that belong on the gain line of `report.fixes(index)`, in order; may be empty.
std::vector<Text> gain_sentences(const Report& report, int index);

}  // namespace idlescope::report
