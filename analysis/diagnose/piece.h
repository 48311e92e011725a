// A piece of device time with its leaf: what attribution produces.
//
// In/out between the stages of diagnose/: device states and gap splitting emit pieces, the
// ledger sums them. Pieces are short-lived; only sums and the longest gaps are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/diagnose/diagnosis.h"
#include "proto/report.pb.h"

namespace idlescope::diagnose {

struct Piece {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  report::Leaf leaf{};
  Grade grade = Grade::kA;
  uint32_t call = kNone;    // Process::calls the time is charged to
  uint32_t batch = kNone;   // LoaderHistory::batches that was missing
  uint32_t thread = kNone;  // ProcessThreads::threads
  uint32_t op = kNone;      // Process::ops, of busy time

  Ns length_ns() const { return end_ns - begin_ns; }
};

using Pieces = std::vector<Piece>;

}  // namespace idlescope::diagnose
