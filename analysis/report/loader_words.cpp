#include "analysis/report/loader_words.h"

#include <algorithm>
#include <cmath>

#include "proto/messages.h"

namespace idlescope::report {
namespace {

// More processes than this are no advice: their memory and start-up cost come first.
constexpr int kMostWorkers = 64;

double free_cores(const diagnose::LoaderSummary& loader) {
  if (loader.cores <= 0 || loader.cores_busy <= 0) return -1;
  return std::max(0.0, loader.cores - loader.cores_busy);
}

std::string whole(double value) { return decimal(std::floor(value + 0.5), 0); }

}  // namespace

bool per_sample_cost(const Context& context) {
  const diagnose::LoaderSummary& loader = context.d.loader;
  if (loader.samples_mean < 64 || loader.fetch_mean_ns <= 0) return false;
  const double each_ns = loader.fetch_mean_ns / loader.samples_mean;
  const bool waits = loader.fetch_counters && loader.fetch_blocked_share > 0.2;
  const double bytes_each = loader.fetch_bytes_mean / loader.samples_mean;
  // 50 us is a few Python calls; decoding the smallest JPEG takes longer.
  return each_ns <= 50e3 && !waits && bytes_each <= 4096;
}

bool collate_bound(const Context& context) {
  const diagnose::LoaderSummary& loader = context.d.loader;
  return loader.fetch_mean_ns > 0 && loader.collate_mean_ns > 0.5 * loader.fetch_mean_ns;
}

bool waits_overlap(const Context& context) {
  const diagnose::LoaderSummary& loader = context.d.loader;
  return loader.fetch_counters && loader.fetch_blocked_share > 0.5;
}

std::optional<int> enough_workers(const Context& context) {
  const diagnose::LoaderSummary& loader = context.d.loader;
  if (loader.num_workers < 0 || loader.fetch_mean_ns <= 0 || !context.per_step) return std::nullopt;
  const double compute_ns = std::max(1.0, context.unit_ns - context.verdict_ns(DATA));
  const double batches = std::max(1u, context.d.step.micro_steps);
  const double need = loader.fetch_mean_ns * batches / compute_ns;
  int workers = static_cast<int>(std::min<double>(kMostWorkers, std::ceil(need * 1.2)));
  workers = std::max(workers, 2);
  if (!waits_overlap(context) && loader.cores > 0) {
    // One core stays for the main process.
    workers = std::min(workers, std::max(1, static_cast<int>(loader.cores) - 1));
  }
  if (workers <= loader.num_workers) return std::nullopt;
  return workers;
}

std::vector<Text> loader_sentences(const Context& context) {
  const diagnose::LoaderSummary& loader = context.d.loader;
  std::vector<Text> out;
  if (!loader.seen) {
    out.push_back(Say(context.worthwhile(context.leaf_ns(DATA_UNSEEN)) ? messages::kLoaderOfTheJob
                                                                       : messages::kLoaderNotSeen));
    return out;
  }
  const bool serial = loader.num_workers == 0;
  const std::string workers = std::to_string(loader.num_workers);
  const double free = free_cores(loader);
  if (per_sample_cost(context)) {
    out.push_back(
        Say(messages::kPerSampleCost)
            .with("samples", count(static_cast<uint64_t>(loader.samples_mean)))
            .with("each", duration(std::llround(loader.fetch_mean_ns / loader.samples_mean))));
    return out;
  }
  switch (context.d.limiter) {
    case LIMITER_SERIAL:
      if (waits_overlap(context)) {
        out.push_back(Say(loader.blocked_storage_share >= 0.5 ? messages::kLimiterStorageSerial
                                                              : messages::kLimiterRemoteSerial)
                          .with("blocked", percent(loader.fetch_blocked_share)));
      } else if (free >= 1) {
        out.push_back(Say(messages::kLimiterSerial).with("free", whole(free)));
      } else {
        out.push_back(Say(messages::kLimiterPlainSerial));
      }
      break;
    case LIMITER_WORKERS:
      if (free >= 1) {
        out.push_back(
            Say(messages::kLimiterWorkers).with("workers", workers).with("free", whole(free)));
      } else {
        out.push_back(Say(messages::kLimiterPlainWorkers).with("workers", workers));
      }
      break;
    case LIMITER_CORES:
      out.push_back(Say(messages::kLimiterCores).with("cores", whole(loader.cores)));
      break;
    case LIMITER_STORAGE:
    case LIMITER_REMOTE:
      if (serial) {
        out.push_back(Say(context.d.limiter == LIMITER_STORAGE ? messages::kLimiterStorageSerial
                                                               : messages::kLimiterRemoteSerial)
                          .with("blocked", percent(loader.fetch_blocked_share)));
      } else {
        out.push_back(Say(context.d.limiter == LIMITER_STORAGE ? messages::kLimiterStorage
                                                               : messages::kLimiterRemote)
                          .with("workers", workers)
                          .with("blocked", percent(loader.fetch_blocked_share)));
      }
      break;
    case LIMITER_PIN:
      out.push_back(
          Say(messages::kLimiterPin).with("pin", duration(std::llround(loader.pin_mean_ns))));
      break;
    case LIMITER_IPC:
      if (loader.unpickle_share > 0.5) {
        out.push_back(Say(messages::kLimiterUnpickle)
                          .with("unpickle", duration(std::llround(loader.unpickle_mean_ns))));
        break;
      }
      out.push_back(
          Say(messages::kLimiterIpc).with("pickle", duration(std::llround(loader.pickle_mean_ns))));
      break;
    case LIMITER_ORDERING:
      out.push_back(Say(messages::kLimiterOrdering));
      break;
    case LIMITER_SHARDS:
      out.push_back(
          Say(messages::kLimiterShards)
              .with("empty", std::to_string(std::max(loader.empty_workers, loader.late_workers)))
              .with("workers", workers));
      break;
    case LIMITER_PREFETCH:
      out.push_back(Say(messages::kLimiterPrefetch));
      break;
    case LIMITER_STARTUP:
      out.push_back(Say(messages::kLimiterStartup));
      break;
    default:
      out.push_back(Say(messages::kLimiterUnknown));
      break;
  }
  if (collate_bound(context)) {
    out.push_back(Say(messages::kCollateCost)
                      .with("share", percent(loader.collate_mean_ns / loader.fetch_mean_ns)));
  } else if (!loader.frames.empty() && loader.frames[0].share >= 0.3) {
    out.push_back(Say(messages::kHotFrame)
                      .with("share", percent(loader.frames[0].share))
                      .with("site", context.site_and_function(loader.frames[0].site)));
  }
  return out;
}

}  // namespace idlescope::report
