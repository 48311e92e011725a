#include "analysis/diagnose/verdict.h"

#include <algorithm>

namespace idlescope::diagnose {
namespace {

constexpr double kFloor = 0.02;  // a smaller share is in no verdict
constexpr double kBusy = 0.95;
constexpr double kMostlyBusy = 0.50;
constexpr double kOtherMatters = 0.10;
constexpr double kTie = 1.5;  // LAUNCH and HOST this close are one
constexpr double kUnknownNormal = 0.05;
constexpr double kUnknownNormalStep = 0.02;
constexpr double kUnknownLikely = 0.15;
constexpr double kUnderfilled = 0.5;

double share_of(const Shares& shares, report::Verdict verdict) {
  for (const VerdictShare& share : shares.verdicts) {
    if (share.verdict == verdict) return share.share;
  }
  return 0;
}

const VerdictShare* largest_cause(const Shares& shares) {
  for (const VerdictShare& share : shares.verdicts) {
    if (share.verdict != report::COMPUTE) return &share;
  }
  return nullptr;
}

void keep(const Shares& shares, report::Verdict verdict, std::vector<VerdictShare>& out) {
  for (const VerdictShare& share : shares.verdicts) {
    if (share.verdict == verdict) out.push_back(share);
  }
}

VerdictResult cannot_tell(Reason reason) {
  VerdictResult result;
  result.verdict = report::CANNOT_TELL;
  result.certainty = report::CANNOT_TELL_YET;
  result.reason = reason;
  return result;
}

// Certainty by evidence: steps, confidence, losses, unknown time.
void gate(const VerdictInput& in, double unknown_of_absent, double unknown_of_step,
          VerdictResult& result) {
  const StepSummary& step = *in.step;
  result.certainty = report::SURE;
  const auto lower = [&](Reason reason) {
    if (result.certainty != report::SURE) return;
    result.certainty = report::LIKELY;
    result.reason = reason;
  };
  const bool busy = result.verdict == report::COMPUTE || result.verdict == report::UNDERFILLED;
  if (step.window_only) {
    lower(in.imported ? Reason::kImport : Reason::kStepsUnclear);
  } else if (step.steady_steps < kStepsForVerdict) {
    lower(in.imported ? Reason::kImport : Reason::kFewSteps);
  }
  if (!step.window_only && step.confidence < 0.8) lower(Reason::kStepsUnclear);
  if (in.dropped_share >= 0.001) lower(Reason::kDropped);
  if (!busy && (unknown_of_absent > kUnknownNormal || unknown_of_step > kUnknownNormalStep)) {
    lower(Reason::kUnknownTime);
  }
  if (in.joined_poorly) lower(Reason::kUnknownTime);
  if (!busy && in.shares->top_probability > 0 && in.shares->top_probability < 0.9 &&
      result.shares.size() < 2) {
    lower(Reason::kTied);
    // The tie is printed: the next verdict stands beside it.
    for (const VerdictShare& share : in.shares->verdicts) {
      if (share.verdict == report::COMPUTE || share.verdict == result.verdict) continue;
      result.shares.push_back(share);
      break;
    }
  }
}

}  // namespace

report::Leaf top_leaf_of(const Shares& shares, report::Verdict verdict) {
  report::Leaf top = report::LEAF_UNSPECIFIED;
  Ns most = 0;
  for (const LeafTime& time : shares.leaves) {
    if (verdict_of(time.leaf) == verdict && time.total_ns > most) {
      most = time.total_ns;
      top = time.leaf;
    }
  }
  return top;
}

VerdictResult decide(const VerdictInput& in) {
  const Shares& shares = *in.shares;
  const DeviceDiagnosis& device = *in.device;
  const StepSummary& step = *in.step;
  if (device.ops < 20 && device.compute_ns + device.mem_ns < 1'000'000 &&
      device.hidden_copy_ns < 1'000'000 && share_of(shares, report::TRANSFER) < 0.5) {
    return cannot_tell(Reason::kNoOps);
  }
  // Steps, launches, copies, and never a kernel: those rows are missing (a table that was not
  // exported, rows with damaged times), and idle time that is not idle has no cause.
  if (device.compute_ns == 0 && share_of(shares, report::TRANSFER) < 0.5) {
    VerdictResult result = cannot_tell(Reason::kRecordsMissing);
    result.records_missing = true;
    return result;
  }
  const double base = std::max<double>(1, static_cast<double>(shares.base_ns));
  const double busy = share_of(shares, report::COMPUTE);
  const double absent = base - static_cast<double>(device.compute_ns);
  const double unknown_of_absent = absent > 0 ? shares.unknown_ns / absent : 0;
  const double unknown_of_step = shares.unknown_ns / base;

  VerdictResult result;
  if (step.startup_only) {
    result.verdict = report::STARTUP;
    result.certainty = report::LIKELY;
    result.reason = Reason::kStartupOnly;
    result.top_leaf = report::STARTUP_LEAF;
    return result;
  }
  // Own recordings can go on: say what is missing instead of guessing.
  if (!in.imported && !step.window_only && step.steady_steps < kStepsForVerdict) {
    result = cannot_tell(Reason::kFewSteps);
    result.shares = shares.verdicts;
    return result;
  }

  const VerdictShare* cause = largest_cause(shares);
  const double cause_share = cause == nullptr ? 0 : cause->share;
  const bool unknown_decides =
      unknown_of_absent > kUnknownLikely && unknown_of_step > kUnknownNormalStep;
  const bool healthy =
      busy >= kBusy || (cause_share < kFloor && !unknown_decides) ||
      (busy > kMostlyBusy && cause_share < kOtherMatters && unknown_of_step < kOtherMatters);
  if (healthy) {
    const bool underfilled = device.fill >= 0 && device.fill < kUnderfilled &&
                             device.rated_share > 0.5 && busy >= kOtherMatters * 5;
    result.verdict = underfilled ? report::UNDERFILLED : report::COMPUTE;
    result.top_leaf = report::BUSY_COMPUTE;
    keep(shares, report::COMPUTE, result.shares);
    if (cause != nullptr && cause_share >= kFloor) result.shares.push_back(*cause);
  } else if (unknown_decides) {
    const bool queued = in.longest_unexplained_queue_ns >= 1'000'000;
    result = cannot_tell(queued ? Reason::kRecordsMissing : Reason::kUnknownTime);
    result.records_missing = queued;
    result.shares = shares.verdicts;
    return result;
  } else {
    result.verdict = cause->verdict;
    keep(shares, cause->verdict, result.shares);
    const bool feeding = cause->verdict == report::LAUNCH || cause->verdict == report::HOST;
    if (feeding) {
      const report::Verdict other =
          cause->verdict == report::LAUNCH ? report::HOST : report::LAUNCH;
      const double second = share_of(shares, other);
      if (second >= kFloor && cause->share < kTie * second) keep(shares, other, result.shares);
    }
    result.top_leaf = top_leaf_of(shares, result.verdict);
  }
  gate(in, unknown_of_absent, unknown_of_step, result);
  return result;
}

}  // namespace idlescope::diagnose
