#include "analysis/report/sentences.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/report/loader_words.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

using messages::Message;

const Message& waits_for(Verdict verdict) {
  switch (verdict) {
    case DATA:
      return messages::kForBatch;
    case TRANSFER:
      return messages::kForCopies;
    case LAUNCH:
      return messages::kForLaunches;
    case SYNC:
      return messages::kForSync;
    case HOST:
      return messages::kForHost;
    case ALLOC:
      return messages::kForAlloc;
    case COMPILE:
      return messages::kForCompile;
    case COMM:
      return messages::kForRanks;
    case PERIODIC:
      return messages::kForPeriodic;
    case STARTUP:
      return messages::kForStartup;
    default:
      return messages::kForUnknown;
  }
}

class Writer {
 public:
  Writer(const Context& context, Report* report) : c_(context), report_(report) {}

  void add(Text text) { *report_->add_sentences() = std::move(text); }

  void split(Verdict verdict, double wait_ns) {
    if (!c_.device) return;
    const Message& form = c_.per_step ? messages::kStepSplit : messages::kWindowSplit;
    add(Say(form)
            .with(c_.per_step ? "step" : "window", c_.time(c_.unit_ns))
            .with("compute", c_.time(c_.compute_ns()))
            .with("compute_share", percent(c_.share(c_.compute_ns())))
            .with("wait", c_.time(wait_ns))
            .with("wait_share", percent(c_.share(wait_ns)))
            .nested("for_what", waits_for(verdict)));
  }

  void compute_only() {
    if (!c_.device) return;
    add(Say(c_.per_step ? messages::kStepCompute : messages::kWindowCompute)
            .with(c_.per_step ? "step" : "window", c_.time(c_.unit_ns))
            .with("compute", c_.time(c_.compute_ns()))
            .with("compute_share", percent(c_.share(c_.compute_ns()))));
  }

  void data() {
    split(DATA, c_.verdict_ns(DATA));
    for (Text& text : loader_sentences(c_)) add(std::move(text));
  }

  void transfer() {
    split(TRANSFER, c_.verdict_ns(TRANSFER));
    const diagnose::CopySummary* most = nullptr;
    for (const diagnose::CopySummary& copy : c_.d.copies) {
      if (copy.exposed_ns > 0 && (!most || copy.exposed_ns > most->exposed_ns)) most = &copy;
    }
    if (!most || most->total_ns <= 0) return;
    add(Say(messages::kTransferPath)
            .with("path", most->path)
            .with("bytes",
                  bytes(static_cast<uint64_t>(static_cast<double>(most->bytes) / c_.steps)))
            .with("rate",
                  decimal(static_cast<double>(most->bytes) / static_cast<double>(most->total_ns),
                          1)));
    const double hidden =
        1 - static_cast<double>(most->exposed_ns) / static_cast<double>(most->total_ns);
    add(Say(messages::kTransferHidden).with("share", percent(std::max(0.0, hidden))));
  }

  void launch() {
    compute_only();
    if (!c_.device) return;
    if (c_.per_step && c_.device->median_kernel_ns > 0 &&
        c_.device->median_launch_interval_ns > 0) {
      add(Say(messages::kLaunchDetail)
              .with("kernels",
                    count(static_cast<uint64_t>(std::llround(c_.d.step.kernels_per_step))))
              .with("kernel", duration(c_.device->median_kernel_ns))
              .with("launch", duration(c_.device->median_launch_interval_ns)));
    }
    if (report_->launch_optimizer_share() >= 0.5) {
      add(Say(messages::kLaunchOptimizer)
              .with("share", percent(report_->launch_optimizer_share())));
    } else if (c_.device->fill >= 0 && c_.device->fill < 0.5) {
      if (c_.d.loader.batch_size > 0) {
        add(Say(messages::kBatchSmall).with("batch", std::to_string(c_.d.loader.batch_size)));
      } else {
        add(Say(messages::kKernelsSmall));
      }
    }
  }

  void sync() {
    split(SYNC, c_.verdict_ns(SYNC));
    const diagnose::CallSummary* most = nullptr;
    for (const diagnose::CallSummary& call : c_.d.calls) {
      if (call.cost_ns > 0 && (!most || call.cost_ns > most->cost_ns)) most = &call;
    }
    if (most && c_.per_step) {
      add(Say(messages::kSyncDetail)
              .with("call", most->name)
              .with("count", decimal(static_cast<double>(most->count) / c_.steps, 1)));
    }
  }

  void largest_part(Verdict verdict) {
    if (!c_.device) return;
    split(verdict, c_.verdict_ns(verdict));
    Leaf largest = LEAF_UNSPECIFIED;
    double most = 0;
    for (const diagnose::LeafTime& leaf : c_.device->leaves) {
      if (verdict_of(leaf.leaf) == verdict && c_.leaf_ns(leaf.leaf) > most) {
        most = c_.leaf_ns(leaf.leaf);
        largest = leaf.leaf;
      }
    }
    if (largest != LEAF_UNSPECIFIED && largest != HOST_PYTHON) {
      add(Say(messages::kHostDetail).nested("what", leaf_words(largest)));
    }
    if (largest == HOST_PYTHON && !c_.d.loader.seen) add(Say(messages::kLoaderNotSeen));
    for (const diagnose::Gap& gap : c_.d.gaps) {
      if (verdict_of(gap.top_leaf) != verdict || gap.doing.empty() || gap.thread.empty()) continue;
      add(Say(messages::kGapDetail)
              .with("gap", duration(gap.end_ns - gap.begin_ns))
              .with("thread", gap.thread)
              .with("doing", gap.doing));
      break;
    }
  }

  void compile() {
    largest_part(COMPILE);
    if (c_.d.run.compiles > 0) {
      add(Say(messages::kCompileRecurring).with("count", count(c_.d.run.compiles)));
    }
  }

  void comm() {
    split(COMM, c_.verdict_ns(COMM));
    const diagnose::RankDiagnosis* last = nullptr;
    for (const diagnose::RankDiagnosis& rank : c_.d.ranks) {
      if (!last || rank.last_share > last->last_share) last = &rank;
    }
    if (c_.d.ranks.size() > 1 && last && last->last_share > 0.5) {
      add(Say(messages::kCommStraggler)
              .with("rank", std::to_string(last->rank))
              .with("share", percent(last->last_share))
              .nested("why", leaf_words(last->guilty_leaf)));
    } else if (c_.d.ranks.size() < 2) {
      add(Say(messages::kCommUnverified));
    }
  }

  void stalls(Verdict verdict) {
    if (c_.device && c_.verdict_ns(verdict) > 0) split(verdict, c_.verdict_ns(verdict));
    for (const diagnose::RunStall& stall : c_.d.run.stalls) {
      if (stall.verdict != verdict) continue;
      Say say(stall.period_steps > 0 ? messages::kPeriodicEvery : messages::kPeriodicDetail);
      if (stall.what.empty()) {
        say.nested("what", leaf_words(stall.leaf));
      } else {
        say.with("what", stall.what);
      }
      if (stall.period_steps > 0) {
        say.with("period", decimal(stall.period_steps, 0));
      } else {
        say.with("count", count(stall.count));
      }
      add(say.with("each", duration(stall.mean_ns))
              .with("total", duration(stall.total_ns))
              .with("share", percent(stall.share_of_run)));
    }
  }

  void startup() {
    const diagnose::RunLedger& run = c_.d.run;
    const double wall = static_cast<double>(run.end_ns - run.begin_ns);
    if (wall > 0 && run.startup_ns > 0) {
      add(Say(messages::kStartupDetail)
              .with("startup", duration(run.startup_ns))
              .with("wall", duration(run.end_ns - run.begin_ns))
              .with("share", percent(static_cast<double>(run.startup_ns) / wall)));
    }
    if (run.epochs >= 2 && run.epoch_restart_ns > 0 && wall > 0) {
      add(Say(messages::kStartupEpochs)
              .with("epochs", count(run.epochs))
              .with("each", duration(run.epoch_restart_ns / static_cast<int64_t>(run.epochs)))
              .with("share", percent(static_cast<double>(run.epoch_restart_ns) / wall))
              .with("busy", percent(c_.share(c_.compute_ns()))));
    } else if (c_.d.step.startup_only || c_.d.reason == diagnose::Reason::kStartupOnly) {
      add(Say(messages::kStartupOnly));
    } else {
      add(Say(messages::kStartupOnce));
    }
  }

  void compute() {
    const double rest = std::max(0.0, c_.unit_ns - c_.compute_ns() - c_.verdict_ns(CANNOT_TELL));
    if (c_.per_step) {
      add(Say(messages::kComputeSplit)
              .with("compute", c_.time(c_.compute_ns()))
              .with("step", c_.time(c_.unit_ns))
              .with("compute_share", percent(c_.share(c_.compute_ns())))
              .with("bound", speedup(c_.bound(rest))));
    } else {
      compute_only();
    }
    // Above 95 % the sentence before has said how little is left.
    if (c_.share(c_.compute_ns()) < 0.95) second(messages::kSecondVerdict);
  }

  void underfilled() {
    compute_only();
    if (c_.device && c_.device->fill >= 0) {
      add(Say(messages::kUnderfilledDetail)
              .with("compute", c_.time(c_.compute_ns()))
              .with("fill", percent(c_.device->fill)));
    }
  }

  // The largest other verdict that is worth naming.
  void second(const Message& form) {
    for (const diagnose::VerdictShare& other : c_.d.verdict_shares) {
      if (other.verdict == c_.d.verdict || other.verdict == COMPUTE ||
          other.verdict == CANNOT_TELL || other.verdict == UNDERFILLED) {
        continue;
      }
      const double ns = c_.verdict_ns(other.verdict);
      if (!c_.worthwhile(ns)) continue;
      add(Say(form)
              .nested("what", row_words(other.verdict))
              .with("wait", c_.time(ns))
              .with("wait_share", percent(c_.share(ns)))
              .with("bound", speedup(c_.bound(ns))));
      return;
    }
  }

  void nvml() {
    const double shown = c_.d.evidence.nvml_utilization;
    if (shown < 0 || !c_.device || c_.d.verdict == CANNOT_TELL) return;
    if (std::abs(shown - c_.share(c_.compute_ns())) < 0.03) return;
    add(Say(messages::kNvmlUtilization).with("nvml", percent(shown)));
  }

  void cannot_tell();

 private:
  const Context& c_;
  Report* report_;
};

void Writer::cannot_tell() {
  using diagnose::Reason;
  const diagnose::StepSummary& step = c_.d.step;
  const auto host_side = [&] {
    const diagnose::RunLedger& run = c_.d.run;
    if (run.mean_step_ns <= 0 || !c_.d.loader.seen) return false;
    const double wait = run.mean_step_ns * run.loader_wait_share;
    const TimeScale scale(std::llround(run.mean_step_ns));
    Say split(messages::kHostOnlySplit);
    const Text inner = split.with("step", scale.with_unit(std::llround(run.mean_step_ns)))
                           .with("wait", scale.with_unit(std::llround(wait)))
                           .with("wait_share", percent(run.loader_wait_share));
    Say outer(messages::kHostOnly);
    for (const auto& [name, value] : inner.values()) outer.with(name, value);
    add(outer.nested("host", messages::kHostOnlySplit));
    return true;
  };
  switch (c_.d.reason) {
    case Reason::kNothing:
      add(Say(messages::kTellNothing));
      return;
    case Reason::kNoDevice:
      if (!host_side()) add(Say(messages::kTellNoDevice));
      if (c_.d.run.loader_wait_share >= 0.1) {
        for (Text& text : loader_sentences(c_)) add(std::move(text));
      }
      return;
    case Reason::kNoOps:
      add(Say(messages::kTellNoOps));
      return;
    case Reason::kNoStepYet:
      add(Say(messages::kTellNoStep));
      return;
    case Reason::kStillCompiling:
      add(Say(messages::kTellCompiling));
      return;
    case Reason::kStartupOnly:
      add(Say(messages::kStartupOnly));
      return;
    case Reason::kRecordsMissing:
      add(Say(messages::kTellRecordsMissing));
      break;
    case Reason::kUnknownTime:
      add(Say(messages::kTellUnknownTime).with("share", percent(c_.d.evidence.unknown_of_absent)));
      break;
    case Reason::kDropped:
      add(Say(messages::kTellDropped).with("share", percent(c_.d.evidence.dropped_share)));
      break;
    case Reason::kTied:
      add(Say(messages::kTellTied));
      break;
    case Reason::kStepsUnclear:
      add(Say(messages::kTellStepsUnclear));
      break;
    case Reason::kFewSteps:
    case Reason::kImport:
    case Reason::kNoReason:
      break;
  }
  if (c_.d.reason == Reason::kFewSteps) {
    add(Say(messages::kNotEnoughSteps)
            .with("steps", count(step.steady_steps))
            .with("verdict_needs", "20")
            .with("forecast_needs", "50"));
    if (step.mean_ns > 0 && step.steady_steps < 50) {
      const double missing = (50 - static_cast<double>(step.steady_steps)) * step.mean_ns;
      // In windows a tenth of the time at most is recorded; whole minutes are honest enough.
      const double minutes = std::max(1.0, std::ceil(missing / 60e9));
      add(Say(messages::kTellLonger).with("time", decimal(minutes, 0) + " min"));
    }
  }
  if (c_.device && c_.unit_ns > 0) compute_only();
}

}  // namespace

void write_sentences(const Context& context, Report* report) {
  Writer writer(context, report);
  const diagnose::Diagnosis& d = context.d;
  bool launch_and_host = false;
  if (d.verdict == LAUNCH || d.verdict == HOST) {
    for (const diagnose::VerdictShare& other : d.verdict_shares) {
      launch_and_host |=
          other.verdict != d.verdict && (other.verdict == LAUNCH || other.verdict == HOST);
    }
  }
  writer.add(Say(launch_and_host ? messages::kVerdictLaunchHost : verdict_words(d.verdict)));
  switch (d.verdict) {
    case DATA:
      writer.data();
      break;
    case TRANSFER:
      writer.transfer();
      break;
    case LAUNCH:
      writer.launch();
      break;
    case SYNC:
      writer.sync();
      break;
    case HOST:
    case ALLOC:
      writer.largest_part(d.verdict);
      break;
    case COMPILE:
      writer.compile();
      break;
    case PERIODIC:
      writer.stalls(PERIODIC);
      break;
    case COMM:
      writer.comm();
      break;
    case STARTUP:
      writer.startup();
      break;
    case COMPUTE:
      writer.compute();
      break;
    case UNDERFILLED:
      writer.underfilled();
      break;
    default:
      writer.cannot_tell();
      break;
  }
  if (d.verdict != COMPUTE && d.verdict != CANNOT_TELL && d.verdict_shares.size() > 1) {
    writer.second(messages::kTied);
  }
  if (d.reason == diagnose::Reason::kImport && d.verdict != CANNOT_TELL) {
    if (context.per_step) {
      writer.add(Say(messages::kTellImport).with("steps", count(d.step.steady_steps)));
    } else {
      writer.add(Say(messages::kTellImportWindow));
    }
  }
  writer.nvml();
}

Text gap_words(const diagnose::Gap& gap) {
  const std::string length = duration(gap.end_ns - gap.begin_ns);
  const std::string thread =
      gap.thread.empty() ? std::string(messages::kThreadMain.text) : gap.thread;
  if (gap.batch >= 0 && verdict_of(gap.top_leaf) == DATA) {
    if (gap.worker >= 0 && gap.worker_since_ns > 0 && gap.worker_since_ns <= gap.end_ns) {
      return Say(messages::kGapBatch)
          .with("gap", length)
          .with("thread", thread)
          .with("batch", std::to_string(gap.batch))
          .with("worker", std::to_string(gap.worker))
          .with("since", duration(gap.end_ns - gap.worker_since_ns));
    }
    return Say(messages::kGapBatchPlain)
        .with("gap", length)
        .with("thread", thread)
        .with("batch", std::to_string(gap.batch));
  }
  if (!gap.doing.empty()) {
    return Say(messages::kGapDoing)
        .with("gap", length)
        .with("thread", thread)
        .with("doing", gap.doing)
        .nested("why", leaf_words(gap.top_leaf));
  }
  return Say(messages::kGapWhy).with("gap", length).nested("why", leaf_words(gap.top_leaf));
}

}  // namespace idlescope::report
