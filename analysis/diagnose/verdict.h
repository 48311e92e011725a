// The verdict of one device and how sure it is (A6, E, amendments A1.15-18).
//
// In: shares, the device's numbers, the step structure. Out: verdict, certainty, and the
// reason where it is not sure. The order of tests is the order of the rules below:
//   nothing to judge · busy (COMPUTE, UNDERFILLED) · unknown time · largest cause
//   · LAUNCH and HOST as one · gate (steps, confidence, losses, ties)
#pragma once

#include <vector>

#include "analysis/diagnose/diagnosis.h"
#include "analysis/diagnose/shares.h"

namespace idlescope::diagnose {

struct VerdictInput {
  const Shares* shares = nullptr;
  const DeviceDiagnosis* device = nullptr;
  const StepSummary* step = nullptr;
  bool imported = false;
  double dropped_share = 0;
  Ns longest_unexplained_queue_ns = 0;
  bool joined_poorly = false;  // the ns that end in un-joined ops exceed the UNKNOWN limits
};

struct VerdictResult {
  report::Verdict verdict{};
  report::Certainty certainty{};
  Reason reason = Reason::kNoReason;
  report::Leaf top_leaf{};
  std::vector<VerdictShare> shares;  // the verdict and its ties, largest first
  bool records_missing = false;
};

inline constexpr uint64_t kStepsForVerdict = 20;

VerdictResult decide(const VerdictInput& input);

// Largest leaf that rolls up to the verdict.
report::Leaf top_leaf_of(const Shares& shares, report::Verdict verdict);

}  // namespace idlescope::diagnose
