// Advice for a slow loader. The limiter decides, not the stage: more workers are never
// advised when cores are exhausted, shards are missing or the cost is a Python call a sample.
#include <algorithm>
#include <cmath>

#include "analysis/report/advice.h"
#include "analysis/report/loader_words.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// How a framework that builds the DataLoader itself spells its options.
enum class Framework { kPlain, kTransformers, kTimm, kWebDataset };

Framework framework(const diagnose::LoaderSummary& loader) {
  const auto mentions = [&](std::string_view part) {
    return loader.inner_site.find(part) != std::string::npos ||
           loader.site.find(part) != std::string::npos;
  };
  if (mentions("transformers/")) return Framework::kTransformers;
  if (mentions("timm/")) return Framework::kTimm;
  if (mentions("webdataset/")) return Framework::kWebDataset;
  return Framework::kPlain;
}

std::string option(const diagnose::LoaderSummary& loader, const std::string& name,
                   const std::string& value) {
  switch (framework(loader)) {
    case Framework::kTransformers:
      return "TrainingArguments(dataloader_" + name + "=" + value + ")";
    case Framework::kTimm:
      if (name == "num_workers") return "--workers " + value;
      return "create_loader(..., " + name + "=" + value + ")";
    case Framework::kWebDataset:
      return "WebLoader(..., " + name + "=" + value + ")";
    case Framework::kPlain:
      break;
  }
  return "DataLoader(..., " + name + "=" + value + ")";
}

class DataAdvice {
 public:
  explicit DataAdvice(Advice* advice)
      : advice_(advice), c_(advice->context()), loader_(c_.d.loader), cost_(c_.verdict_ns(DATA)) {}

  Fix* offer(std::string_view id, Text text, std::string code = "", double cost = -1) {
    // Without the loader all time in next() is gone, also what a wait in front of it hid.
    const double ceiling = cost < 0 && c_.per_step ? loader_.wait_mean_ns : 0;
    Fix* fix = advice_->offer(id, DATA, std::move(text), cost < 0 ? cost_ : cost, ceiling);
    if (!fix) return nullptr;
    fix->set_code(std::move(code));
    fix->set_site(c_.site(loader_.site));
    return fix;
  }

  void more_workers(bool waits) {
    const std::optional<int> to = enough_workers(c_);
    if (!to) {
      if (loader_.num_workers < 0) {
        offer("num-workers", Say(messages::kFixNumWorkersUnknown),
              "DataLoader(..., num_workers=…)");
      }
      return;
    }
    const std::string from = std::to_string(loader_.num_workers);
    const std::string target = std::to_string(*to);
    Fix* fix = offer("num-workers",
                     Say(waits ? messages::kFixWorkersOverlap : messages::kFixNumWorkers)
                         .with("from", from)
                         .with("to", target),
                     option(loader_, "num_workers", target));
    if (fix) (*fix->mutable_parameters())["num_workers"] = target;
  }

  void cheaper() {
    if (collate_bound(c_)) {
      offer("collate", Say(messages::kFixCollate), "", cost_share(loader_.collate_mean_ns));
    } else if (!loader_.frames.empty()) {
      Fix* fix = offer(
          "cheaper-prepare",
          Say(messages::kFixCheaperAt).with("site", c_.site_and_function(loader_.frames[0].site)),
          "", cost_ * std::min(1.0, loader_.frames[0].share));
      if (fix) fix->set_site(c_.site(loader_.frames[0].site));
    } else {
      offer("cheaper-prepare", Say(messages::kFixCheaperPrepare));
    }
  }

  void cache() {
    offer("cache", Say(messages::kFixCache), "",
          cost_ * std::min(1.0, loader_.fetch_blocked_share));
  }

  void by_limiter();
  void epochs();

 private:
  double cost_share(double part_ns) const {
    return loader_.fetch_mean_ns > 0 ? cost_ * std::min(1.0, part_ns / loader_.fetch_mean_ns) : 0;
  }

  Advice* advice_;
  const Context& c_;
  const diagnose::LoaderSummary& loader_;
  const double cost_;
};

void DataAdvice::by_limiter() {
  if (!loader_.seen && c_.worthwhile(c_.leaf_ns(DATA_UNSEEN))) {
    offer("own-loader", Say(messages::kFixOwnLoader), "DataLoader(dataset, num_workers=8)");
    return;
  }
  if (!loader_.seen || (loader_.num_workers < 0 && !loader_.unseen.empty())) return;
  if (per_sample_cost(c_)) {
    offer("batch-index", Say(messages::kFixBatchIndex), "for i in batches: x = data[i]");
    return;
  }
  const bool waits = waits_overlap(c_);
  switch (c_.d.limiter) {
    case LIMITER_CORES:
      cheaper();
      break;
    case LIMITER_SHARDS:
      offer("shards", Say(messages::kFixShards)
                          .with("workers", std::to_string(std::max(1, loader_.num_workers))));
      break;
    case LIMITER_STORAGE:
    case LIMITER_REMOTE:
      // More fetches at once were seen to move no more: that is what these limiters say.
      cache();
      more_workers(waits);
      break;
    case LIMITER_PIN:
      offer("pin-thread", Say(messages::kFixPinThread));
      break;
    case LIMITER_IPC:
      offer("ipc", Say(messages::kFixIpc));
      break;
    case LIMITER_ORDERING:
      offer("in-order", Say(messages::kFixOrdering), option(loader_, "in_order", "False"));
      break;
    case LIMITER_PREFETCH: {
      const int from = std::max(2, loader_.prefetch_factor);
      const std::string to = std::to_string(2 * from);
      Fix* fix =
          offer("prefetch-factor",
                Say(messages::kFixPrefetch).with("from", std::to_string(from)).with("to", to),
                option(loader_, "prefetch_factor", to));
      if (fix) (*fix->mutable_parameters())["prefetch_factor"] = to;
      break;
    }
    case LIMITER_STARTUP:
      break;  // epochs() has the advice
    case LIMITER_SERIAL:
    case LIMITER_WORKERS:
    default:
      // Collating first: a costly collate_fn costs the same again in every worker.
      if (collate_bound(c_)) cheaper();
      more_workers(waits);
      if (waits) {
        cache();
      } else if (!collate_bound(c_)) {
        cheaper();
      }
      break;
  }
}

void DataAdvice::epochs() {
  const diagnose::RunLedger& run = c_.d.run;
  const double wall = static_cast<double>(run.end_ns - run.begin_ns);
  if (run.epochs < 2 || wall <= 0 || loader_.num_workers == 0) return;
  const double share = static_cast<double>(run.epoch_restart_ns) / wall;
  if (share < kWorthwhile) return;
  // Shares of the run, given as if spread over the steps so that fixes can be ranked.
  const double cost = share * c_.unit_ns;
  if (!loader_.persistent_workers) {
    Fix* fix =
        advice_->offer("persistent-workers", STARTUP, Say(messages::kFixPersistentWorkers), cost);
    if (fix) {
      fix->set_code(option(loader_, "persistent_workers", "True"));
      fix->set_site(c_.site(loader_.site));
      (*fix->mutable_parameters())["persistent_workers"] = "True";
    }
  }
  if (loader_.start_method == "spawn") {
    Fix* fix = advice_->offer("start-method", STARTUP, Say(messages::kFixFork), cost);
    if (fix) {
      fix->set_code("DataLoader(..., multiprocessing_context=\"forkserver\")");
      fix->set_site(c_.site(loader_.site));
    }
  }
}

}  // namespace

void data_fixes(Advice* advice) {
  DataAdvice data(advice);
  if (advice->context().d.verdict == STARTUP || advice->context().d.limiter == LIMITER_STARTUP) {
    data.epochs();
    data.by_limiter();
  } else {
    data.by_limiter();
    data.epochs();
  }
}

}  // namespace idlescope::report
