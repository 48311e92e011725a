// Advice for everything but the loader.
#include <algorithm>
#include <cmath>

#include "analysis/report/advice.h"
#include "analysis/report/blocked_thread.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// Waited for as the copy's own time; what its call is charged with is in the leaves.
double waited_for(const Context& c, std::string_view path_part) {
  double sum = 0;
  for (const diagnose::CopySummary& copy : c.d.copies) {
    if (copy.path.find(path_part) != std::string::npos) sum += static_cast<double>(copy.charged_ns);
  }
  return sum / c.steps;
}

const char* graph_code(const Context& c) {
  return c.cpp ? "at::cuda::CUDAGraph graph; graph.capture_begin(); ... graph.replay();"
               : "torch.compile(model, mode=\"reduce-overhead\")";
}

constexpr double kManyBytes = 4e6;   // a step; from here on sending fewer is worth the change
constexpr double kOverlapped = 0.4;  // of the copies' time without a kernel beside it

void transfer(Advice* advice) {
  const Context& c = advice->context();
  const double all = c.verdict_ns(TRANSFER);
  if (!c.worthwhile(all)) return;
  const double pageable = c.leaf_ns(XFER_PAGEABLE) + waited_for(c, "pageable");
  const double pinned = waited_for(c, "H2D pinned");
  const double back = waited_for(c, "D2H");
  uint64_t to_device_bytes = 0;
  double to_device_ns = 0;
  double alone_ns = 0;
  for (const diagnose::CopySummary& copy : c.d.copies) {
    if (copy.path.find("H2D") == std::string::npos) continue;
    to_device_bytes += copy.bytes;
    to_device_ns += static_cast<double>(copy.total_ns);
    alone_ns += static_cast<double>(copy.exposed_ns);
  }
  const double bytes_per_step = static_cast<double>(to_device_bytes) / c.steps;
  const bool mostly_pageable = pageable >= pinned;
  const auto pin = [&] {
    Fix* fix = advice->offer("pin-non-blocking", TRANSFER, Say(messages::kFixPinNonBlocking),
                             std::min(all, pageable));
    if (!fix) return;
    if (c.cpp) {
      *fix->mutable_text() = Say(messages::kFixPinnedCopy);
      fix->set_code("x.pin_memory().to(device, /*non_blocking=*/true)");
      return;
    }
    fix->set_code("DataLoader(..., pin_memory=True); x.to(device, non_blocking=True)");
    fix->set_site(c.site(c.d.loader.site));
  };
  const auto prefetch = [&](double cost) {
    Fix* fix = advice->offer("prefetch-stream", TRANSFER, Say(messages::kFixPrefetchStream), cost);
    if (!fix) return;
    fix->set_code(c.cpp ? "c10::cuda::CUDAStreamGuard guard(side); x = x.to(device, true);"
                        : "with torch.cuda.stream(side): x = x.to(device, non_blocking=True)");
  };
  // They run under kernels already: what sticks out is bytes, not order.
  const bool overlapped = to_device_ns > 0 && alone_ns < kOverlapped * to_device_ns;
  // Many small copies are one: pinning each of them would leave the calls.
  const double small = c.leaf_ns(XFER_SMALL);
  const auto pack = [&] {
    advice->offer("small-copies", TRANSFER, Say(messages::kFixSmallCopies), small, all);
  };
  if (small > 0.4 * all) pack();  // the same calls are partly counted as pageable copies
  if (back > 0.5 * all) {
    advice->offer("copy-back", TRANSFER, Say(messages::kFixCopyBack), std::min(all, back));
  } else if (mostly_pageable && pageable > 0) {
    pin();
    prefetch(all);
  } else {
    // Pinned already, or the kind of memory is not known: overlapping is what is missing.
    if (!overlapped || bytes_per_step < kManyBytes) prefetch(all);
  }
  if (small > 0.3 * all) pack();
  if (bytes_per_step >= kManyBytes && back <= 0.5 * all) {
    Fix* fix = advice->offer("uint8", TRANSFER, Say(messages::kFixUint8), 0.75 * all);
    if (!fix) return;
    fix->set_code(c.cpp ? "x = x.to(device, true).to(torch::kFloat).div_(255);"
                        : "x = x.to(device, non_blocking=True).float().div_(255)");
  }
}

// How the optimizer updates: one parameter after the other, several in one kernel step by step
// (foreach), or everything in one kernel (fused).
enum class Updates { kOneByOne, kForeach, kFused };

Updates updates_of(const Context& c) {
  if (c.d.chosen_process >= c.recording.processes.size()) return Updates::kOneByOne;
  Updates found = Updates::kOneByOne;
  for (const read::OpDescriptor& op : c.recording.processes[c.d.chosen_process].op_descriptors) {
    if (op.kind != trace::OP_KERNEL) continue;
    const std::string_view name = c.recording.strings[op.name];
    if (name.find("multi_tensor_apply") == std::string_view::npos) continue;
    // PyTorch's FusedOptimizerTensorListMetadata, Apex' and DeepSpeed's AdamFunctor.
    for (const char* fused : {"FusedOptimizer", "AdamFunctor", "AdamMathFunctor", "LAMB"}) {
      if (name.find(fused) != std::string_view::npos) return Updates::kFused;
    }
    found = Updates::kForeach;
  }
  return found;
}

void fused_optimizer(Advice* advice, Verdict verdict, double cost, double ceiling) {
  const Updates updates = updates_of(advice->context());
  if (updates == Updates::kFused) return;  // it is
  Fix* fix =
      advice->offer("fused-optimizer", verdict, Say(messages::kFixFusedOptimizer), cost, ceiling);
  if (!fix || advice->context().cpp) return;
  fix->set_code(updates == Updates::kForeach ? "optim.Adam(..., fused=True)"
                                             : "optim.Adam(..., fused=True), or foreach=True");
}

// Waits for the device in the middle of the step leave little that a graph can hold.
bool interrupted(const Context& c) { return c.device->launches_between_waits < 0.5; }

void offer_graph(Advice* advice, Verdict verdict, double replaced) {
  const Context& c = advice->context();
  const Text text =
      interrupted(c)
          ? Say(messages::kFixCudaGraphWaits).with("waits", decimal(c.device->waits_per_step, 0))
          : Say(messages::kFixCudaGraph);
  Fix* fix = advice->offer("cuda-graph", verdict, text, replaced, replaced + c.waits_ns());
  if (fix) fix->set_code(graph_code(c));
}

void launch(Advice* advice) {
  const Context& c = advice->context();
  const double launching = c.leaf_ns(LAUNCH_LEAF);
  const double all = c.verdict_ns(LAUNCH);
  const double optimizer = advice->report().launch_optimizer_share();
  if (optimizer >= 0.5) {
    fused_optimizer(advice, LAUNCH, optimizer * all, optimizer * all + c.waits_ns());
  }
  double graph_replaces = 0;
  // Work that is inside graphs already is not launched kernel by kernel.
  if (c.device->ops_in_graphs < 0.5) {
    // Replaying the step replaces its launches and the host code between them.
    // Python code that takes longer than they do is no glue between them (augmentation in the
    // loop): a graph leaves it.
    const double python = c.leaf_ns(HOST_PYTHON);
    const double replaced = launching + (python <= launching ? python : 0) +
                            c.leaf_ns(HOST_FORWARD) + c.leaf_ns(HOST_BACKWARD) +
                            c.leaf_ns(HOST_OPTIMIZER);
    if (c.worthwhile(launching)) graph_replaces = replaced;
  }
  if (graph_replaces > 0 && !interrupted(c)) offer_graph(advice, LAUNCH, graph_replaces);
  const bool underfilled = c.device->fill >= 0 && c.device->fill < 0.5;
  if (optimizer < 0.5 && (underfilled || c.device->launch_bound)) {
    Fix* fix = advice->offer("larger-batch", LAUNCH, Say(messages::kFixLargerBatch), all);
    if (fix) {
      fix->set_per_second_only(true);
      fix->set_ceiling_speedup(0);  // samples/s may grow by more than the step shrinks
      *fix->mutable_no_forecast() = Say(messages::kNoForecast);
    }
  }
  if (graph_replaces > 0) offer_graph(advice, LAUNCH, graph_replaces);
}

void sync(Advice* advice) {
  const Context& c = advice->context();
  if (c.leaf_ns(SYNC_SCALAR) > 0) {
    Fix* fix = advice->offer("item", SYNC, Say(messages::kFixItem), c.leaf_ns(SYNC_SCALAR));
    if (fix && c.d.loader.inner_site.find("transformers/") != std::string::npos) {
      // The Trainer reads every loss to filter NaN and inf (transformers#33693).
      *fix->mutable_text() = Say(messages::kFixNanFilter);
      fix->set_code("TrainingArguments(logging_nan_inf_filter=False)");
    }
  }
  advice->offer("synchronize", SYNC,
                Say(c.cpp ? messages::kFixRemoveSync : messages::kFixSynchronize),
                c.leaf_ns(SYNC_EXPLICIT));
  advice->offer("implicit-sync", SYNC, Say(messages::kFixImplicitSync), c.leaf_ns(SYNC_IMPLICIT));
  advice->offer("remove-sync", SYNC, Say(messages::kFixRemoveSync), c.leaf_ns(SYNC_EVENT));
}

void host(Advice* advice) {
  const Context& c = advice->context();
  struct Part {
    Leaf leaf;
    const messages::Message& text;
    const char* id;
    const char* code;
  };
  const Part parts[] = {
      {HOST_LOGGING, messages::kFixLogging, "logging", ""},
      {HOST_GC, messages::kFixGc, "gc", "gc.disable(); if step % 1000 == 0: gc.collect()"},
      {HOST_OPTIMIZER, messages::kFixFusedOptimizer, "fused-optimizer",
       "optim.Adam(..., fused=True), or foreach=True"},
      {HOST_BLOCKED, messages::kFixBlocked, "blocked-thread", "OMP_NUM_THREADS=1"},
      {HOST_EVALUATION, messages::kFixEvaluation, "evaluation", ""},
  };
  std::vector<const Part*> order;
  for (const Part& part : parts) order.push_back(&part);
  std::stable_sort(order.begin(), order.end(), [&](const Part* a, const Part* b) {
    return c.leaf_ns(a->leaf) > c.leaf_ns(b->leaf);
  });
  double rest = c.leaf_ns(HOST_PYTHON) + c.leaf_ns(HOST_FORWARD) + c.leaf_ns(HOST_BACKWARD);
  const bool of_the_step = c.leaf_ns(HOST_FORWARD) + c.leaf_ns(HOST_BACKWARD) > 0.5 * rest;
  const double replaced = rest;
  // What a fused optimizer still spends in its own code is host code like any other.
  if (updates_of(c) == Updates::kFused) rest += c.leaf_ns(HOST_OPTIMIZER);
  bool said_rest = false;
  const auto offer_rest = [&] {
    if (said_rest) return;
    said_rest = true;
    // Host time next to launches of small kernels goes away with the same fix.
    if (of_the_step && c.device->ops_in_graphs < 0.5) offer_graph(advice, HOST, replaced);
    advice->offer("host-code", HOST, Say(messages::kFixHostCode), rest, rest + c.waits_ns());
  };
  for (const Part* part : order) {
    const double cost = c.leaf_ns(part->leaf);
    if (rest > cost) offer_rest();  // the larger part comes first
    const std::string call = part->leaf == HOST_BLOCKED ? sleeping_call(c) : "";
    const bool wants_no_core = part->leaf == HOST_BLOCKED && cores_were_free(c);
    // Fewer threads give it nothing that it lacked.
    if (wants_no_core && call.empty() && !much_blocked(c)) continue;
    if (part->leaf == HOST_OPTIMIZER) {
      fused_optimizer(advice, HOST, cost, cost + c.waits_ns());
      continue;
    }
    Fix* fix = advice->offer(part->id, HOST, Say(part->text), cost, cost + c.waits_ns());
    if (!fix) continue;
    if (!c.cpp && !wants_no_core) fix->set_code(part->code);
    if (part->leaf != HOST_BLOCKED) continue;
    if (waits_for_lock(c)) {
      *fix->mutable_text() = Say(messages::kFixInterpreterLock);
      fix->clear_code();
      continue;
    }
    if (call.empty()) continue;
    // Fewer threads do not wake it sooner.
    fix->set_id("blocked-call");
    *fix->mutable_text() = Say(messages::kFixBlockedCall).with("call", call + "()");
    fix->clear_code();
  }
  offer_rest();
}

void alloc(Advice* advice) {
  const Context& c = advice->context();
  const double pinned = c.leaf_ns(ALLOC_PINNED);
  const double device = c.leaf_ns(ALLOC_DEVICE) + c.leaf_ns(ALLOC_LOCK);
  Fix* fix = advice->offer("alloc", ALLOC, Say(messages::kFixAlloc), device);
  if (fix) fix->set_code("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  advice->offer("alloc-pinned", ALLOC, Say(messages::kFixAllocPinned), pinned);
}

void compile(Advice* advice) {
  const Context& c = advice->context();
  const double cost = c.verdict_ns(COMPILE);
  Fix* fix = advice->offer("fixed-shapes", COMPILE, Say(messages::kFixCompileShapes), cost);
  if (fix && c.leaf_ns(COMPILE_AUTOTUNE) > 0.5 * cost)
    fix->set_code("torch.backends.cudnn.benchmark = False");
  advice->offer("warm-up", COMPILE, Say(messages::kFixCompileWarm), cost);
}

void periodic(Advice* advice) {
  const Context& c = advice->context();
  double share = 0;
  for (const diagnose::RunStall& stall : c.d.run.stalls) {
    if (stall.verdict == PERIODIC && stall.leaf == CKPT) share += stall.share_of_run;
  }
  advice->offer("async-checkpoint", PERIODIC, Say(messages::kFixCheckpoint),
                std::max(c.leaf_ns(CKPT), share * c.unit_ns));
}

void comm(Advice* advice) {
  const Context& c = advice->context();
  const double cost = c.verdict_ns(COMM);
  if (c.d.ranks.size() < 2) {
    Fix* fix = advice->offer("all-ranks", COMM, Say(messages::kFixAllRanks), cost);
    if (fix) fix->clear_no_forecast();  // it changes nothing by itself
    return;
  }
  const auto guilty =
      std::max_element(c.d.ranks.begin(), c.d.ranks.end(),
                       [](const auto& a, const auto& b) { return a.guilty_ns < b.guilty_ns; });
  if (guilty->guilty_ns <= 0) return;
  advice->offer("straggler", COMM,
                Say(messages::kFixStraggler)
                    .with("rank", std::to_string(guilty->rank))
                    .nested("why", leaf_words(guilty->guilty_leaf)),
                std::min(cost, guilty->guilty_ns));
}

void underfilled(Advice* advice) {
  const Context& c = advice->context();
  if (c.device->fill <= 0) return;
  const double compute = c.compute_ns();
  Fix* fix = advice->offer(
      "larger-batch", UNDERFILLED,
      Say(messages::kFixLargerBatchLimit).with("speedup", speedup(1 / c.device->fill)),
      compute * (1 - c.device->fill));
  if (!fix) return;
  fix->set_per_second_only(true);
  fix->set_ceiling_speedup(1 / c.device->fill);
  fix->clear_no_forecast();  // the sentence says its limit
}

}  // namespace

void device_fixes(Verdict verdict, Advice* advice) {
  switch (verdict) {
    case TRANSFER:
      return transfer(advice);
    case LAUNCH:
      return launch(advice);
    case SYNC:
      return sync(advice);
    case HOST:
      return host(advice);
    case ALLOC:
      return alloc(advice);
    case COMPILE:
      return compile(advice);
    case PERIODIC:
      return periodic(advice);
    case COMM:
      return comm(advice);
    case UNDERFILLED:
      return underfilled(advice);
    default:
      return;
  }
}

}  // namespace idlescope::report
