#include "analysis/report/sentences.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/report/blocked_thread.h"
#include "analysis/report/kernel_name.h"
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

// Above this share of a step there is little left to talk about.
constexpr int64_t kSlowFirstBatchNs = 1'000'000'000;
constexpr double kMuchOfRun = 0.4;
constexpr double kNearlyAllCompute = 0.95;

bool startup_only(const Context& c) {
  return c.d.step.startup_only || c.d.reason == diagnose::Reason::kStartupOnly;
}

// The verdict in one sentence.
const Message& first_sentence(const Context& c) {
  const diagnose::Diagnosis& d = c.d;
  if (d.verdict == LAUNCH || d.verdict == HOST) {
    for (const diagnose::VerdictShare& other : d.verdict_shares) {
      if (other.verdict != d.verdict && (other.verdict == LAUNCH || other.verdict == HOST)) {
        return messages::kVerdictLaunchHost;
      }
    }
  }
  // "Nothing holds it back" is not said of a GPU that waits a tenth of its time.
  if (d.verdict == COMPUTE && c.device && c.share(c.compute_ns()) < kNearlyAllCompute) {
    return messages::kVerdictComputeMostly;
  }
  if (d.verdict == STARTUP && startup_only(c)) return messages::kVerdictStartupOnly;
  return verdict_words(d.verdict);
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
    add(Say(c_.per_step ? messages::kTransferPath : messages::kTransferPathTotal)
            .with("path", most->path)
            .with("bytes",
                  bytes(static_cast<uint64_t>(static_cast<double>(most->bytes) / c_.steps)))
            .with("rate",
                  decimal(static_cast<double>(most->bytes) / static_cast<double>(most->total_ns),
                          1)));
    // Where the wait is charged to the call (pageable memory), the copy's exposed time is not
    // all of what was waited for: then nothing is said about the rest.
    double in_calls = 0;
    for (const Leaf leaf : {XFER_PAGEABLE, XFER_SYNC, XFER_SMALL, XFER_SLOW, XFER_OTHER}) {
      in_calls += c_.leaf_ns(leaf);
    }
    if (in_calls > 0.05 * c_.verdict_ns(TRANSFER)) return;
    const double hidden =
        1 - static_cast<double>(most->exposed_ns) / static_cast<double>(most->total_ns);
    if (hidden < 0.005) {
      add(Say(messages::kTransferNotHidden));
    } else {
      add(Say(messages::kTransferHidden).with("share", percent(hidden)));
    }
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
      const std::string times = decimal(static_cast<double>(most->count) / c_.steps, 1);
      add(Say(messages::kSyncDetail)
              .with("call", plain_call_name(most->name))
              .with("count", times)
              .nested("times", times == "1" ? messages::kOnce : messages::kTimes));
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
    if (largest == HOST_BLOCKED && waits_for_lock(c_)) add(Say(messages::kHostLock));
    if (largest == HOST_PYTHON && !c_.d.loader.seen) add(Say(messages::kLoaderNotSeen));
    const diagnose::Gap* longest = nullptr;
    for (const diagnose::Gap& gap : c_.d.gaps) {
      if (verdict_of(gap.top_leaf) != verdict) continue;
      if (!longest || gap.end_ns - gap.begin_ns > longest->end_ns - longest->begin_ns) {
        longest = &gap;
      }
    }
    // The step's own name says nothing about what is done in it.
    if (longest && !longest->doing.empty() && !longest->thread.empty() &&
        longest->doing.compare(0, 13, "ProfilerStep#") != 0) {
      add(longest_wait_words(*longest));
    }
  }

  void compile() {
    largest_part(COMPILE);
    if (c_.d.run.compiles > 0) {
      add(Say(messages::kCompileRecurring)
              .counted("count", "times", c_.d.run.compiles, messages::kOnce, messages::kTimes));
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
    if (!c_.d.collectives.empty()) {
      const diagnose::CollectiveSummary& most = c_.d.collectives.front();
      add(Say(most.one_rank ? messages::kCommBusOneRank : messages::kCommBus)
              .with("name", most.name)
              .with("ranks", std::to_string(most.ranks))
              .with("rate", decimal(most.bus_gb_per_s, most.bus_gb_per_s < 10 ? 1 : 0)));
    }
  }

  // Evaluation has numbers of its own; small ones are no news.
  void evaluation() {
    const double wall = static_cast<double>(c_.d.run.end_ns - c_.d.run.begin_ns);
    for (int i = 0; i < report_->phases_size(); ++i) {
      Phase* phase = report_->mutable_phases(i);
      if (phase->name() != "evaluation" || phase->steps() == 0) continue;
      if (wall <= 0 || static_cast<double>(phase->total_ns()) < kWorthwhile * wall) continue;
      *phase->add_sentences() = Say(messages::kPhaseApart)
                                    .counted("batches", "counted", phase->steps(),
                                             messages::kPhaseOneBatch, messages::kPhaseBatches)
                                    .with("each", duration(phase->mean_step_ns()))
                                    .with("total", duration(phase->total_ns()));
      if (phase->window_ns() > 0) {
        const VerdictShare* most = nullptr;
        for (const VerdictShare& share : phase->verdict_shares()) {
          if (share.verdict() == COMPUTE || share.share() < kWorthwhile) continue;
          if (!most || share.share() > most->share()) most = &share;
        }
        Say say(most ? messages::kPhaseWaits : messages::kPhaseBusy);
        say.with("compute_share", percent(phase->busy_share()));
        if (most) {
          say.with("wait_share", percent(most->share()))
              .nested("for_what", waits_for(most->verdict()));
        }
        *phase->add_sentences() = std::move(say);
      }
      for (const Text& text : phase->sentences()) add(text);
    }
  }

  void stalls(Verdict verdict) {
    if (c_.device && c_.verdict_ns(verdict) > 0) split(verdict, c_.verdict_ns(verdict));
    for (const diagnose::RunStall& stall : c_.d.run.stalls) {
      if (stall.verdict == verdict) add(stall_words(stall));
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
    } else if (startup_only(c_)) {
      add(Say(messages::kLetItRun));
    } else {
      add(Say(messages::kStartupOnce));
    }
  }

  // A slow first batch of training that is healthy afterwards: worth a word, not the verdict.
  void startup_beside_it() {
    const diagnose::RunLedger& run = c_.d.run;
    const double wall = static_cast<double>(run.end_ns - run.begin_ns);
    if (run.first_batch_ns < kSlowFirstBatchNs || wall <= 0 ||
        static_cast<double>(run.startup_ns) < kMuchOfRun * wall) {
      return;
    }
    add(Say(messages::kStartupDetail)
            .with("startup", duration(run.startup_ns))
            .with("wall", duration(run.end_ns - run.begin_ns))
            .with("share", percent(static_cast<double>(run.startup_ns) / wall)));
    add(Say(messages::kStartupOnce));
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
    startup_beside_it();
    // Above that the sentence before has said how little is left.
    if (c_.share(c_.compute_ns()) < kNearlyAllCompute) {
      second(c_.per_step ? messages::kSecondVerdict : messages::kSecondVerdictWindow);
    }
  }

  void underfilled() {
    compute_only();
    if (c_.device && c_.device->fill >= 0) {
      add(Say(messages::kUnderfilledDetail).with("fill", percent(c_.device->fill)));
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
              .nested("what", cause_words(other.verdict))
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

 private:
  const Context& c_;
  Report* report_;
};

}  // namespace

void write_sentences(const Context& context, Report* report) {
  Writer writer(context, report);
  const diagnose::Diagnosis& d = context.d;
  writer.add(Say(first_sentence(context)));
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
      for (Text& text : unsure_sentences(context)) writer.add(std::move(text));
      if (wants_numbers(d.reason) && context.device && context.unit_ns > 0) writer.compute_only();
      break;
  }
  if (d.verdict != COMPUTE && d.verdict != CANNOT_TELL && d.verdict_shares.size() > 1) {
    writer.second(context.per_step ? messages::kTied : messages::kTiedWindow);
  }
  if (d.verdict != CANNOT_TELL) writer.evaluation();
  if (d.reason == diagnose::Reason::kImport && d.verdict != CANNOT_TELL) {
    if (context.per_step) {
      writer.add(Say(messages::kTellImport)
                     .counted("steps", "counted", d.step.steady_steps, messages::kOneStep,
                              messages::kManySteps));
    } else {
      writer.add(Say(messages::kTellImportWindow));
    }
  }
  writer.nvml();
}

}  // namespace idlescope::report
