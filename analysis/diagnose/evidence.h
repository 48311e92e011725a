// What was recorded, what was not, and which questions therefore stay open (A7).
//
// In: windows, losses, joins, loader history. Out: EvidenceSummary and one Abstention for
// each row of docs/evidence.md whose producer is missing. A question that did not come up
// (no allocation leaf is needed where nothing is unexplained) is still listed: it is what
// this recording cannot answer.
#pragma once

#include <vector>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/diagnosis.h"
#include "analysis/diagnose/shares.h"

namespace idlescope::diagnose {

// `pass` and `shares` may be null: host-only.
EvidenceSummary summarize_evidence(const model::Model& model, uint32_t process,
                                   const DevicePass* pass, const Shares* shares);

std::vector<Abstention> find_abstentions(const model::Model& model, uint32_t process,
                                         bool has_device);

CostSummary summarize_cost(const model::Model& model, uint32_t process);

}  // namespace idlescope::diagnose
