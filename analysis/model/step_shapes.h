// Evaluation between training steps, told by what a step launches (C4).
//
// In: the launch order and the starts of steps that device anchors found. Out: the runs of
// launches that are evaluation. A step is compared with the ordinary one as a multiset of
// tokens (weighted Jaccard): one that holds an ordinary step and, in one piece, much more of
// its forward part only, has evaluated.
//
//   ordinary    o f f f b b b
//   this one    o f f f f f f f f f f f f b b b      what is more: f only
//                 └── evaluation ──┘
//
// What is more and looks like a whole step (an update that was skipped) is no evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/model/launch_order.h"

namespace idlescope::model {

struct EvaluationRun {
  size_t first = 0;  // of the launch order
  size_t last = 0;   // one past
  uint64_t batches = 0;
};

// Models that take turns (GAN): steps of two kinds or more that alternate are one round, and a
// round is a step (C3). Returns the starts of rounds, or `starts` where steps are alike.
std::vector<size_t> merge_rounds(const std::vector<Launched>& order,
                                 const std::vector<size_t>& starts);

std::vector<EvaluationRun> find_evaluation(const std::vector<Launched>& order,
                                           const std::vector<size_t>& starts);

}  // namespace idlescope::model
