// "Cannot tell yet": why, and what would give an answer.
#include <algorithm>
#include <cmath>

#include "analysis/report/loader_words.h"
#include "analysis/report/sentences.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

using diagnose::Reason;

// A forecast needs that many steady steps, a verdict fewer (docs/causes.md).
constexpr uint64_t kVerdictSteps = 20;

// Without GPU work the loader's share of a step is still known.
bool host_side(const Context& c, Text* text) {
  const diagnose::RunLedger& run = c.d.run;
  if (run.mean_step_ns <= 0 || !c.d.loader.seen) return false;
  const double wait = run.mean_step_ns * run.loader_wait_share;
  const TimeScale scale(std::llround(run.mean_step_ns));
  *text = Say(messages::kHostOnly)
              .with("step", scale.with_unit(std::llround(run.mean_step_ns)))
              .with("wait", scale.with_unit(std::llround(wait)))
              .with("wait_share", percent(run.loader_wait_share))
              .nested("host", messages::kHostOnlySplit);
  return true;
}

std::vector<Text> few_steps(const diagnose::StepSummary& step) {
  std::vector<Text> out;
  out.push_back(Say(messages::kNotEnoughSteps)
                    .counted("steps", "steady_were", step.steady_steps, messages::kOneSteadyStepWas,
                             messages::kManySteadyStepsWere)
                    .with("verdict_needs", std::to_string(kVerdictSteps)));
  if (step.mean_ns > 0 && step.steady_steps < kVerdictSteps) {
    const double missing = static_cast<double>(kVerdictSteps - step.steady_steps) * step.mean_ns;
    // In windows a tenth of the time at most is recorded; whole minutes are honest enough.
    const double minutes = std::max(1.0, std::ceil(missing / 60e9));
    out.push_back(Say(messages::kTellLonger).with("time", decimal(minutes, 0) + " min"));
  }
  return out;
}

}  // namespace

std::vector<Text> unsure_sentences(const Context& c) {
  std::vector<Text> out;
  switch (c.d.reason) {
    case Reason::kNothing:
      out.push_back(Say(c.imported ? messages::kTellNothingInFile : messages::kTellNothing));
      break;
    case Reason::kNoDevice: {
      Text text;
      out.push_back(host_side(c, &text) ? text : Text(Say(messages::kTellNoDevice)));
      if (c.d.run.loader_wait_share >= 0.1) {
        for (Text& sentence : loader_sentences(c)) out.push_back(std::move(sentence));
      }
      break;
    }
    case Reason::kNoOps:
      out.push_back(Say(messages::kTellNoOps));
      break;
    case Reason::kNoStepYet:
      out.push_back(Say(messages::kTellNoStep));
      break;
    case Reason::kStillCompiling:
      out.push_back(Say(messages::kTellCompiling));
      break;
    case Reason::kStartupOnly:
      out.push_back(Say(messages::kStartupOnly));
      break;
    case Reason::kRecordsMissing:
      out.push_back(Say(messages::kTellRecordsMissing));
      break;
    case Reason::kUnknownTime:
      out.push_back(
          Say(messages::kTellUnknownTime).with("share", percent(c.d.evidence.unknown_of_absent)));
      break;
    case Reason::kDropped:
      out.push_back(Say(messages::kTellDropped).with("share", percent(c.d.evidence.dropped_share)));
      break;
    case Reason::kTied:
      out.push_back(Say(messages::kTellTied));
      break;
    case Reason::kStepsUnclear:
      out.push_back(Say(messages::kTellStepsUnclear));
      break;
    case Reason::kFewSteps:
      out = few_steps(c.d.step);
      break;
    case Reason::kImport:
    case Reason::kNoReason:
      break;
  }
  return out;
}

bool wants_numbers(Reason reason) {
  switch (reason) {
    case Reason::kNothing:
    case Reason::kNoDevice:
    case Reason::kNoOps:
    case Reason::kNoStepYet:
    case Reason::kStillCompiling:
    case Reason::kStartupOnly:
      return false;
    default:
      return true;
  }
}

}  // namespace idlescope::report
