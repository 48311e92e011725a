#include "analysis/diagnose/run_verdict.h"

#include <algorithm>
#include <vector>

#include "analysis/diagnose/verdict.h"
#include "proto/report.pb.h"

namespace idlescope::diagnose {
namespace {

// Start-up once is normal in a short trial, where imports and first uses of kernels outweigh
// any training. The wait for the first batch is the verdict only if it is a large part of the
// loop, nothing else is wrong and hardly any training was seen: it happens once, and a longer
// run hides it. Restarts come back every epoch and count in full.
constexpr double kFirstBatchOfLoop = 0.4;
constexpr Ns kFirstBatchNs = 1'000'000'000;
constexpr double kRestartsOfRun = 0.1;
constexpr double kStallOfRun = 0.10;  // as kOtherMatters of the steady verdict
constexpr double kStallShown = 0.02;
constexpr double kCovered = 0.5;
constexpr double kCompileOfLoop = 0.2;
constexpr uint64_t kCompilesOften = 10;

}  // namespace

void weigh_run_against_window(const RunLedger& run, Diagnosis& out) {
  const double wall = static_cast<double>(run.end_ns - run.begin_ns);
  if (wall <= 0 || run.median_step_ns <= 0) return;
  const bool judged = out.verdict != report::CANNOT_TELL && out.verdict != report::STARTUP;
  const bool busy = out.verdict == report::COMPUTE;
  const bool healthy = busy || out.verdict == report::UNDERFILLED;
  // Windows that hold most of the run have seen its stalls: the device ledger has them.
  const double covered = static_cast<double>(out.step.steady_steps) /
                         static_cast<double>(std::max<uint64_t>(1, out.step.run_steps));
  const bool seen_by_device = covered > kCovered && healthy;
  const double steady_part = 1 - static_cast<double>(run.startup_ns + run.epoch_restart_ns) / wall;
  double steady_loss = 0;
  if (judged && !healthy && !out.verdict_shares.empty()) {
    steady_loss = out.verdict_shares.front().share * std::max(0.0, steady_part);
  }
  const auto take = [&](report::Verdict verdict, report::Leaf leaf, double share) {
    VerdictShare own;
    own.verdict = verdict;
    own.share = share;
    own.per_step_ns = share * run.mean_step_ns;
    out.verdict = verdict;
    out.ledger = report::LEDGER_RUN;
    out.top_leaf = leaf;
    // One share a verdict: that of the ledger which decided.
    std::erase_if(out.verdict_shares, [&](const VerdictShare& s) { return s.verdict == verdict; });
    out.verdict_shares.insert(out.verdict_shares.begin(), own);
    if (out.certainty == report::CERTAINTY_UNSPECIFIED ||
        out.certainty == report::CANNOT_TELL_YET) {
      out.certainty = report::LIKELY;
    }
  };
  // Steps that compile or capture again and again are slow and few: the window may not hold
  // enough of them, but the host has seen every one.
  const double loop_ns = run.loop_ns > 0 ? static_cast<double>(run.loop_ns)
                                         : wall - static_cast<double>(run.startup_ns);
  const double compiling = loop_ns > 0 ? static_cast<double>(run.compile_ns) / loop_ns : 0;
  if (out.verdict == report::CANNOT_TELL && run.compiles >= kCompilesOften &&
      compiling > kCompileOfLoop) {
    take(report::COMPILE,
         2 * run.captures > run.compiles ? report::COMPILE_CAPTURE : report::COMPILE_JIT,
         compiling);
    return;
  }
  const double restarts = static_cast<double>(run.epoch_restart_ns) / wall;
  if (!seen_by_device && restarts > kRestartsOfRun && restarts > steady_loss) {
    take(report::STARTUP, report::DATA_STARTUP, restarts);
    return;
  }
  for (const RunStall& stall : run.stalls) {
    // A stall without a name is no verdict: host steps of a loop that runs ahead are long
    // and short by turns while the device works steadily.
    if (stall.verdict != report::PERIODIC || stall.period_steps == 0 || stall.what.empty()) {
      continue;
    }
    // Imports and the first batch are no part of the steps that the stall interrupts.
    const double of_loop = loop_ns > 0 ? static_cast<double>(stall.total_ns) / loop_ns : 0;
    if (!seen_by_device && judged && stall.share_of_run > kStallOfRun &&
        stall.share_of_run > steady_loss) {
      take(report::PERIODIC, stall.leaf, of_loop);
      return;
    }
    const bool listed =
        std::any_of(out.verdict_shares.begin(), out.verdict_shares.end(),
                    [](const VerdictShare& s) { return s.verdict == report::PERIODIC; });
    if (judged && stall.share_of_run > kStallShown && !listed) {
      VerdictShare second;
      second.verdict = report::PERIODIC;
      second.share = of_loop;
      second.per_step_ns = of_loop * run.mean_step_ns;
      out.verdict_shares.push_back(second);
    }
    break;
  }
  // The loop: from the request for the first batch to the end, without other warming up.
  const double loop = wall - static_cast<double>(run.startup_ns - run.first_batch_ns);
  const double first = loop > 0 ? static_cast<double>(run.first_batch_ns) / loop : 0;
  if (busy && run.first_batch_ns >= kFirstBatchNs && first > kFirstBatchOfLoop &&
      out.step.steady_steps < kStepsForVerdict) {
    take(report::STARTUP, report::STARTUP_LEAF, static_cast<double>(run.startup_ns) / wall);
  }
}

}  // namespace idlescope::diagnose
