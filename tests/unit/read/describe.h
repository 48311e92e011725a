// Oracles for tests of readers: a Recording as text, and its promised invariants.
//
// In: what a reader made. Out: `describe` names everything by content, not by index, so that
// two recordings of the same facts compare equal; `broken_invariant` is empty if recording.h
// is kept.
#pragma once

#include <string>

#include "analysis/read/recording.h"

namespace idlescope::test {

std::string describe(const read::Recording& recording);
std::string broken_invariant(const read::Process& process);

}  // namespace idlescope::test
