// Who makes whom wait (B5): collectives matched across the ranks of one job.
//
// In: the passes of all devices of a recording with several ranks. Out: per rank its waiting
// and transfer time, and for the waiting the rank that came last with the leaf in which it
// spends more time than those who wait, step by step. Exposed communication in the ledgers is split into
// COMM_TRANSFER and COMM_STRAGGLER; with one rank it stays BUSY_COMM_EXPOSED.
//
//   rank 0  ██████▒▒▒▒▒▒▒▒▒▒▒▒████      ▒ collective: starts when the rank arrives, ends
//   rank 1  ████████▒▒▒▒▒▒▒▒▒▒████        on all ranks together
//   rank 3  ██░░░░░░░██████▒▒▒████      transfer = shortest of them; the rest is waiting
//             DATA                      for rank 3, whose leaves differ by DATA
//
// Collectives are matched by (communicator, sequence) where recorded, else by order of the
// communication kernels.
#pragma once

#include <vector>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/diagnosis.h"

namespace idlescope::diagnose {

// Passes in the order of Model::devices; changes their ledgers. Empty for a single rank.
std::vector<RankDiagnosis> match_ranks(const model::Model& model, std::vector<DevicePass*>& passes);

}  // namespace idlescope::diagnose
