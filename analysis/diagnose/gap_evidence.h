// What a person needs to believe a gap: who was waited for, what it did, which batch.
//
// In: a gap with its pieces. Out: a Gap of diagnosis.h. Called only for the longest gaps.
#pragma once

#include "analysis/diagnose/diagnosis.h"
#include "analysis/diagnose/piece.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

class GapEvidence {
 public:
  GapEvidence(const model::Model& model, const model::DeviceTimeline& device)
      : model_(model), device_(device), process_(model.process_of(device)) {}

  Gap describe(Ns g0, Ns g1, uint32_t op, uint32_t hops, const Pieces& pieces) const;

  // "main thread", "pin thread", the recorded thread name, or "thread 123".
  std::string thread_role(uint32_t thread) const;

 private:
  std::string doing(const Piece& piece) const;
  void add_batch(uint32_t batch, Gap& gap) const;

  const model::Model& model_;
  const model::DeviceTimeline& device_;
  const read::Process& process_;
};

std::string op_name(const read::Recording& recording, const read::Process& process,
                    const read::Op& op);

}  // namespace idlescope::diagnose
