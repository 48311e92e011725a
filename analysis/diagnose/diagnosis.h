// What the analyzer found: plain numbers for everything a report shows.
//
// In: diagnose::diagnose (diagnose.h). Out: read by analysis/report (which ranks, rounds
// and words it), analysis/whatif and analysis/export. Nothing here is rounded or sorted
// for the eye; times are integer ns, shares are fractions of the analysed device time.
//
// The header is light on purpose: enums of report.proto are declared, not included; a
// user that names enumerators includes proto/report.pb.h.
//
// Invariant (checked in every build): for each device the leaves sum to window_ns exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/fill.h"
#include "proto/message.h"

namespace idlescope::report {
enum Verdict : int;
enum Leaf : int;
enum Limiter : int;
enum Certainty : int;
enum Ledger : int;
}  // namespace idlescope::report

namespace idlescope::diagnose {

using Ns = int64_t;
inline constexpr uint32_t kNone = UINT32_MAX;

// A statement of the message catalogue with values, as in read::Anomaly.
struct Statement {
  messages::Message message;
  messages::Values values;
};

struct Interval {
  double low = 0;
  double high = 0;
  double level = 0;  // 0.95; 0: no interval (too few steps)
};

// How well a ns is known: A a named record covers it; B inferred by hop, replay or
// stage; C default rule, limited by clock skew, or from a single rank.
enum class Grade : uint8_t { kA, kB, kC };

struct LeafTime {
  report::Leaf leaf{};
  Ns total_ns = 0;
  double per_step_ns = 0;      // mean over the analysed steps; 0 without steps
  double share = 0;            // of DeviceDiagnosis::window_ns less PROFILER
  Interval ci;                 // of share
  Ns grade_ns[3] = {0, 0, 0};  // index: Grade
  uint64_t pieces = 0;
};

struct VerdictShare {
  report::Verdict verdict{};
  double share = 0;
  Interval ci;
  double per_step_ns = 0;
};

// One bar of a Timeline lane.
struct Bar {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  std::string label;
  report::Leaf leaf{};  // LEAF_UNSPECIFIED: not a cause bar
  int64_t batch = -1;
  int32_t gap_index = -1;  // into Diagnosis::gaps
  double value = 0;        // queue depth lanes
};

struct Lane {
  std::string name;   // "GPU 0", "copies", "main thread", "worker 3"
  std::string group;  // gpu, copy, cause, host, pin, worker, queue
  std::vector<Bar> bars;
};

struct Timeline {
  std::string which;  // "typical", "worst"
  Ns begin_ns = 0;
  Ns end_ns = 0;
  std::vector<Lane> lanes;
};

// One stretch without compute, with why.
struct GapPiece {
  report::Leaf leaf{};
  Ns begin_ns = 0;
  Ns end_ns = 0;
  Grade grade = Grade::kA;
};

struct Gap {
  uint32_t device = 0;  // index into Diagnosis::devices
  Ns begin_ns = 0;
  Ns end_ns = 0;
  int64_t step = -1;  // index into Diagnosis::step_points; -1: outside steps
  report::Leaf top_leaf{};
  std::vector<GapPiece> pieces;  // in time order, cover the gap exactly
  std::string ended_by;          // name of the op that ended it
  std::string thread;            // role of the thread it was waiting for: "main thread", …
  std::string doing;             // what that thread did for most of it: "next()",
                                 // "cudaStreamSynchronize", range name; empty: nothing recorded
  int64_t batch = -1;            // loader waits: the batch that was missing
  int32_t worker = -1;           // and the worker that had it
  Ns worker_since_ns = 0;        // begin of that worker's fetch; 0: unknown
  int32_t ready = -1;            // queue depth at next(); -1: unknown
  uint32_t hops = 0;             // threads followed before the cause
};

struct KernelSummary {
  std::string name;  // as recorded (mangled or plain)
  uint64_t count = 0;
  Ns total_ns = 0;
  double fill = -1;  // time-weighted; -1: unrated
  Ns tiny_ns = 0;
  Ns underfilled_ns = 0;  // wasted
  Ns tail_ns = 0;         // wasted
  bool fp32_matrix = false;
  bool comm = false;
};

struct CopySummary {
  std::string path;  // "H2D pageable", "D2D", "memset"
  uint64_t count = 0;
  uint64_t bytes = 0;
  Ns total_ns = 0;
  Ns exposed_ns = 0;    // of those ns, with no compute at the same time
  Ns charged_ns = 0;    // of those, charged to the copy itself (BUSY_COPY_EXPOSED, BUSY_MEM) or
                        // to nothing of its own; the rest is charged to the call
  double small_ns = 0;  // of copies of less than 64 KiB
};

struct CallSummary {
  std::string name;  // "cudaStreamSynchronize"
  uint64_t count = 0;
  Ns host_ns = 0;  // sum of durations of outermost calls
  Ns cost_ns = 0;  // device time charged to it
};

struct DeviceDiagnosis {
  uint32_t process = 0;  // index into Diagnosis::processes
  uint32_t device_id = 0;
  std::string name;
  std::string uuid;  // hex; empty: unknown
  uint32_t sm_count = 0;
  uint64_t memory_bytes = 0;
  uint64_t ops = 0;  // in the analysed spans
  uint64_t kernels = 0;
  Ns window_ns = 0;       // analysed device time, Σ leaves exactly
  Ns compute_ns = 0;      // BUSY_COMPUTE
  Ns mem_ns = 0;          // BUSY_MEM
  Ns hidden_copy_ns = 0;  // side counters: under compute, never in the sum
  Ns hidden_comm_ns = 0;
  Ns kernel_sum_ns = 0;          // Σ durations of compute kernels (overlap counted twice)
  std::vector<LeafTime> leaves;  // every leaf with total_ns > 0, in enum order
  std::vector<VerdictShare> verdict_shares;  // roll-up of all leaves, largest first
  report::Verdict verdict{};
  report::Leaf top_leaf{};  // largest leaf of the verdict
  // Busy but under-used (A3).
  double fill = -1;         // time-weighted over rated kernels; -1: unrated
  double kernel_drift = 0;  // last quarter's durations of the same kernels / the first's − 1
  double rated_share = 0;   // of compute ns with known fill
  Ns tiny_ns = 0;
  Ns underfilled_ns = 0;  // wasted
  Ns tail_ns = 0;         // wasted
  Ns fp32_matrix_ns = 0;
  // Launching (A4).
  double launches_per_step = 0;
  Ns median_kernel_ns = 0;
  Ns median_launch_interval_ns = 0;  // Δ, inside bursts
  Ns median_launch_call_ns = 0;
  Ns median_lead_ns = 0;     // how far the host runs ahead
  double ops_in_graphs = 0;  // share of ops that graph launches started
  // Of the launches, those in stretches long enough to be replayed as a graph: no thread
  // waits for the device in them.
  double launches_between_waits = 1;
  double waits_per_step = 0;
  double opaque_share = 0;     // of kernel_sum_ns: graphs recorded as one op each
  bool launch_bound = false;   // after subtracting the recording cost
  bool back_pressure = false;  // launch calls are long because the queue is full
  bool shared_with_other_process = false;
  // Queued ops that waited for unrecorded work (E, amendment 18).
  bool device_records_missing = false;
};

struct StepSummary {
  uint64_t steady_steps = 0;  // analysed device steps over all windows: the n of shares
  uint64_t run_steps = 0;     // host steps of the whole job
  double mean_ns = 0;         // steady device steps
  Ns median_ns = 0;
  Interval mean_ci;               // ns
  double unprofiled_mean_ns = 0;  // host steps outside windows; 0: none
  uint64_t unprofiled_steps = 0;
  double slowdown = 0;    // π; 0: unknown
  double confidence = 0;  // C6
  std::string anchor;     // "marks", "loader", "optimizer", "threads", "count", "none"
  double kernels_per_step = 0;
  uint32_t micro_steps = 1;     // loader batches per optimizer step
  bool window_only = true;      // no step structure: shares are of the window
  bool startup_only = false;    // too little was left after warm-up
  uint64_t dropped_warmup = 0;  // leading steps not analysed
  Ns warmup_ns = 0;
};

struct StepPoint {
  Ns begin_ns = 0;
  Ns duration_ns = 0;
  uint32_t window_id = 0;  // 0: not in a window
  Ns data_wait_ns = -1;    // in next(); -1: unknown
  bool steady = false;     // analysed
  std::string mark;        // "epoch", "checkpoint"; empty: none
};

struct Phase {
  std::string name;    // "train", "evaluation"
  uint64_t steps = 0;  // of an evaluation: batches
  Ns total_ns = 0;
  Ns mean_step_ns = 0;
  // Of the part inside windows, on the chosen device.
  Ns window_ns = 0;  // 0: no window saw this phase
  double busy_share = 0;
  std::vector<LeafTime> leaves;
  std::vector<VerdictShare> verdict_shares;  // largest first
};

// One kind of collective on the chosen device, in the analysed spans.
struct CollectiveSummary {
  std::string name;
  uint32_t ranks = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;  // sum of message sizes
  Ns total_ns = 0;     // waiting for late ranks included
  Ns transfer_ns = 0;  // of the rank that waited least each time
  double alg_gb_per_s = 0;
  double bus_gb_per_s = 0;
  bool one_rank = false;  // nobody knows how long this rank waited
};

// A stall of the whole job (RUN ledger).
struct RunStall {
  report::Verdict verdict{};
  report::Leaf leaf{};
  uint64_t count = 0;
  double period_steps = 0;  // 0: not regular
  Ns total_ns = 0;          // excess over an ordinary step
  Ns mean_ns = 0;
  double share_of_run = 0;
  bool per_epoch = false;
  std::string what;  // "checkpoint", "first batch of an epoch", range name; may be empty
};

struct RunLedger {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  Ns startup_ns = 0;         // until the first steady step
  Ns loop_ns = 0;            // from there to the end of the last step; 0: no steps
  Ns startup_loader_ns = 0;  // of it inside next() or creating workers
  uint64_t epochs = 0;
  Ns epoch_restart_ns = 0;  // sum over epochs: create, reset, excess of the first next(), shutdown
  Ns first_batch_ns = 0;    // of the first epoch
  double mean_step_ns = 0;  // all steps, stalls included
  Ns median_step_ns = 0;
  Ns loader_wait_ns = 0;         // in next(), steps after start-up
  double loader_wait_share = 0;  // of the time of those steps
  double samples_per_step = 0;   // 0: unknown
  uint64_t compiles = 0;         // compile ranges or graph captures after start-up
  Ns compile_ns = 0;             // their time
  uint64_t captures = 0;         // of them graph captures
  bool still_compiling = false;
  bool no_step_yet = false;
  std::vector<RunStall> stalls;
};

struct HotFrame {
  std::string site;  // "data.py:88 collate"
  double share = 0;  // of fetch time
};

// Of one loader: the one that was waited for most (others are counted).
struct LoaderSummary {
  bool seen = false;
  int32_t num_workers = -1;
  int32_t prefetch_factor = -1;
  int64_t batch_size = -1;
  bool pin_memory = false;
  bool persistent_workers = false;
  bool iterable = false;
  bool out_of_order = false;
  bool thread_workers = false;
  std::string start_method;
  std::string site;        // "train.py:41", the first frame outside site-packages
  std::string inner_site;  // innermost frame, "" when the same
  std::string dataset;     // class name
  uint64_t batches = 0;    // with a recorded fetch
  uint64_t delivered = 0;
  double fetch_mean_ns = 0;     // per batch in one worker
  double fetch_cv = 0;          // standard deviation / mean
  bool fetch_counters = false;  // the next three are known
  double fetch_cpu_share = 0;
  double fetch_run_queue_share = 0;
  double fetch_blocked_share = 0;
  double blocked_storage_share = 0;  // of the blocked part
  double fetch_bytes_mean = -1;
  double samples_mean = 0;
  double worker_busy_share = -1;  // -1: unknown
  double pin_busy_share = -1;
  double ipc_busy_share = -1;  // serialising thread of the busiest worker
  double mean_ready = -1;
  double ordering_share = -1;  // of waits: a later batch was already there
  double next_mean_ns = 0;     // all next() calls
  double period_mean_ns = 0;   // from one batch to the next
  double wait_mean_ns = 0;     // per step, in next(), host side
  double hidden_wait_ns = 0;   // of it, per step, while the device computed
  double collate_mean_ns = 0;
  double pickle_mean_ns = 0;
  double unpickle_mean_ns = 0;  // by the main thread, inside next()
  double unpickle_share = 0;    // of the time in next()
  double pin_mean_ns = 0;
  double cores_busy = 0;  // CPUs in use; 0: unknown
  double cores = 0;       // CPUs the job may use; 0: unknown
  std::vector<HotFrame> frames;
  uint32_t loaders = 0;
  std::vector<std::string> unseen;  // recognised by name only
  uint32_t empty_workers = 0;
  uint32_t late_workers = 0;  // started and never delivered
};

// A large host-side number that costs (almost) no device time.
struct NotIt {
  enum class What : uint8_t { kSync, kLaunch, kCopyCall, kNext };
  What what{};
  std::string name;             // call name
  double host_ns_per_step = 0;  // per step, or in all when there are no steps
  double cost_ns_per_step = 0;
  bool back_pressure = false;  // launch calls: the queue was full
};

struct Abstention {
  report::Leaf leaf{};       // LEAF_UNSPECIFIED: not about one leaf
  std::string missing_kind;  // trace.proto Kind name, "KIND_CALL_ALLOC"
  Statement statement;
};

struct RankDiagnosis {
  int32_t rank = 0;
  uint32_t process = 0;
  report::Verdict verdict{};
  double busy_share = 0;
  double mean_step_ns = 0;
  double comm_wait_ns = 0;      // per step
  double comm_transfer_ns = 0;  // per step
  double last_share = 0;        // of matched collectives it arrived last at
  report::Leaf guilty_leaf{};   // why this rank arrives late (largest), if it does
  double guilty_ns = 0;         // per step, caused on others by that leaf
};

struct ProcessSummary {
  std::string host;
  int64_t pid = 0;
  std::string executable;
  std::string command;
  int role = 0;  // trace::Process::Role
  bool has_rank = false;
  int32_t rank = 0;
  int32_t world_size = 0;
  uint64_t gpu_ops = 0;
  uint64_t host_events = 0;
  std::string torch_version;
  std::string python_version;
  Ns first_ns = 0;
  Ns last_ns = 0;
};

struct EvidenceSummary {
  double join_rate = 1;  // device ops with a launch record
  uint64_t ops = 0;
  uint64_t unjoined = 0;
  Ns absent_ns = 0;             // compute-absent time of the chosen device
  double grade[3] = {0, 0, 0};  // shares of it
  double unknown_of_absent = 0;
  double unknown_of_window = 0;
  uint64_t dropped = 0;  // device records
  double dropped_share = 0;
  Ns clock_shift_ns = 0;  // N1, largest absolute
  uint64_t clock_violations = 0;
  std::vector<std::string> recorded_kinds;
  std::vector<std::string> missing_kinds;
  bool truncated = false;
  uint64_t windows = 0;
  double nvml_utilization = -1;  // mean, 0…1; -1: not sampled
  uint32_t other_processes = 0;  // NVML: most pids on the device that are not ours
};

struct CostSummary {
  double share_of_run = -1;
  Ns attach_ns = 0;
  Ns detach_ns = 0;
  Ns per_call_cost_ns = 0;  // subtracted in A4
};

enum class Reason : uint8_t {  // why the verdict is CANNOT_TELL or only likely
  kNoReason,
  kNoDevice,  // host-only recording
  kNoOps,     // a device, but (almost) nothing ran on it
  kFewSteps,
  kUnknownTime,     // too much UNKNOWN
  kRecordsMissing,  // device records are missing (sampled, filtered, in graphs)
  kStartupOnly,
  kStepsUnclear,  // step confidence
  kDropped,
  kTied,
  kNoStepYet,
  kStillCompiling,
  kNothing,  // no process did anything
  kImport,   // 3–19 steps or no steps in an imported file
};

struct Diagnosis {
  report::Verdict verdict{};
  report::Certainty certainty{};
  report::Ledger ledger{};
  Reason reason = Reason::kNoReason;
  report::Leaf top_leaf{};
  report::Limiter limiter{};
  // The verdict and those tied with or close behind it (LAUNCH with HOST; second line
  // of COMPUTE), largest first. Shares of the chosen device.
  std::vector<VerdictShare> verdict_shares;
  double top_probability = 0;  // P(top verdict) under block bootstrap; 0: no steps

  uint32_t chosen_process = kNone;  // into processes
  uint32_t chosen_device = kNone;   // into devices; kNone: host-only
  std::vector<ProcessSummary> processes;
  std::vector<DeviceDiagnosis> devices;

  StepSummary step;
  std::vector<StepPoint> step_points;
  std::vector<Phase> phases;
  RunLedger run;
  LoaderSummary loader;
  std::vector<Gap> gaps;               // the longest of the chosen device, longest first
  std::vector<KernelSummary> kernels;  // of the chosen device, by total time
  std::vector<CopySummary> copies;
  std::vector<CallSummary> calls;
  std::vector<CollectiveSummary> collectives;  // by bytes
  std::vector<NotIt> not_it;                   // candidates, by host time
  std::vector<Timeline> timelines;
  std::vector<Abstention> abstentions;
  std::vector<Statement> limits;
  std::vector<RankDiagnosis> ranks;
  EvidenceSummary evidence;
  CostSummary cost;
  double free_cores = -1;    // CPUs that the job may use and nobody used; -1: unknown
  double process_cpus = -1;  // CPUs that the chosen process used; -1: unknown

  std::string command;
  Ns begin_ns = 0;
  Ns end_ns = 0;
};

}  // namespace idlescope::diagnose
