// Decides when CUPTI is attached and for how long. Pure: time and facts go in, a command
// comes out; no clock, no thread, no CUDA in here.
//
//            a few steady steps,           enough steps,        cost / half the budget later,
//            or one of the rules below     or records           at least 1.5 x the last gap
//   waiting ─────────────────────► open ───────────────► resting ─────────────► open …
//
// Without steady steps the first window opens 3 s after cuInit where nobody marks steps, later
// where they should show; once marks have fallen silent (a loop that replays a CUDA graph); at
// the 48th step if steps never become alike; after 10 minutes in any case.
//
// In: what the drain thread knows at each tick. Out: open, close, or nothing, with the reason
// that the trace stores. Ranks of one job open at the same step numbers, because each decides
// from the step number and the budget alone.
#pragma once

#include <cstdint>

#include "profiler/session/window_requests.h"

namespace idlescope::session {

enum class WindowMode : uint8_t { kAuto, kFull, kOff, kFixed };

struct SchedulerOptions {
  WindowMode mode = WindowMode::kAuto;
  double budget = 0.01;        // share of wall time that recording may cost, at most
  uint64_t fixed_start = 0;    // kFixed: first step (counted from 0) …
  uint64_t fixed_length = 0;   // … and number of steps
  bool several_ranks = false;  // open at step numbers that all ranks derive alike
  int64_t duration_ns = 0;     // -d: stop for good after this time; 0: no limit
  uint64_t steps = 0;          // --steps: stop for good after so many; 0: no limit
};

// All counters are since the process initialised CUDA.
struct SchedulerInput {
  int64_t now_ns = 0;
  uint64_t steps = 0;               // training steps that have ended
  int64_t last_step_ns = 0;         // when the last one ended; 0: none
  uint64_t records = 0;             // device records of the open window
  bool capture_open = false;        // a stream capture is under way
  bool compiling = false;           // torch.compile is at work
  int64_t last_preparation_ns = 0;  // when a compilation or capture last began or ended
  bool hands_off = false;           // another tool wants CUPTI
  bool steps_will_show = false;     // Python bridge is in place: steps are seen when they come
  bool graphs_in_use = false;       // CUDA graphs were launched
  bool reattach_allowed = true;     // by CUPTI version (and graphs)
  bool reattach_sure = false;       // whatever the job does later, this window is not the only one
};

enum class SchedulerCommand : uint8_t { kNothing, kOpen, kClose };

struct SchedulerDecision {
  SchedulerCommand command = SchedulerCommand::kNothing;
  const char* reason = "";
};

// Steps of a window and before it, for the WindowEnd packet.
struct WindowCost {
  int64_t inside_step_ns = 0;  // mean of the steps wholly inside
  int64_t plain_step_ns = 0;   // mean of as many steps before the window
  uint32_t inside_steps = 0;
  uint32_t plain_steps = 0;
};

class WindowScheduler {
 public:
  // Steps a window wants: a verdict needs 20 steady ones, and the first two after an attach
  // are not used for communication. Two windows make the 50 that a forecast needs.
  static constexpr uint32_t kWindowSteps = 28;
  // Where recording costs next to nothing, one window holds those 50.
  static constexpr uint32_t kCheapWindowSteps = 54;
  static constexpr double kCheapSlowdown = 1.03;
  static constexpr int64_t kCheapWindowMaxNs = 30'000'000'000;
  static constexpr int64_t kWindowMinNs = 300'000'000;  // so that attaching pays
  // Later windows come while all of them, the next included, are expected to stay below this
  // part of the budget. The rest is for what turns out dearer than expected; and a run of 45 s
  // is to be as cheap as one of an hour, though each later window is dearest just after it.
  static constexpr double kPlannedShareOfBudget = 0.5;
  static constexpr uint64_t kWindowMaxRecords = 400'000;
  static constexpr int64_t kNoStepsStartNs = 3'000'000'000;  // without step marks
  // Where steps will be marked as soon as there are any: start-up takes long (imports, first
  // use of kernels, workers), and a window spent on it is paid for by a later one. Where it
  // would be the only one, patience is longer.
  static constexpr int64_t kNoStepsYetStartNs = 10'000'000'000;
  static constexpr int64_t kOnlyWindowStartNs = 60'000'000'000;
  // Without marks a window holds this much time in which the device had work, as long as any
  // comes: start-up, with a kernel now and then, is not what is looked for.
  static constexpr int64_t kNoStepsLengthNs = 2'000'000'000;
  static constexpr int64_t kNoStepsMaxNs = 12'000'000'000;
  static constexpr int64_t kFlowLookNs = 200'000'000;
  static constexpr uint64_t kFlowRecords = 40;  // in that time
  // Marks are silent after this long, and after several times a step's duration.
  static constexpr int64_t kSilenceNs = 3'000'000'000;
  static constexpr int64_t kSilentSteps = 5;
  // Steps that do not become alike: variable lengths, not warm-up.
  static constexpr uint64_t kIrregularSteps = 48;
  // Short jobs are somebody's first trial: few steps must be enough to begin. Of slow ones
  // there are even fewer, and a window of them costs less.
  static constexpr uint32_t kSteadyBlock = 4;
  static constexpr uint32_t kSteadySlowBlock = 2;
  static constexpr int64_t kSlowStepNs = 100'000'000;
  // The first window, opened so early, goes on until its own steps are alike, up to this many.
  static constexpr uint32_t kFirstWindowMaxSteps = 64;
  // Ranks: 8, 64, then times 2, 4 or 8 by the budget.
  static constexpr uint64_t kFirstAlignedStep = 8;
  static constexpr uint64_t kSecondAlignedStep = 64;
  static constexpr int64_t kStillWarmingNs = 600'000'000'000;
  static constexpr int64_t kFirstGapNs = 5'000'000'000;
  static constexpr int64_t kTakenRetryNs = 5'000'000'000;
  static constexpr int64_t kCaptureLimitNs = 60'000'000'000;  // then a capture is given up on

  explicit WindowScheduler(const SchedulerOptions& options) : options_(options) {}

  void start(int64_t now_ns);
  SchedulerDecision tick(const SchedulerInput& input);

  // What came of a command.
  void opened(int64_t now_ns, int64_t attach_ns);
  void open_failed(int64_t now_ns, bool try_again);
  // `stayed_attached`: CUPTI's cost goes on, and is booked, until the next window. On its own
  // accord the scheduler then opens none: to switch kinds on again in a job that has made
  // graphs and loaded code meanwhile ended one in a corrupted heap (docs/decisions/017).
  void closed(int64_t now_ns, int64_t detach_ns, bool stayed_attached = false);
  // The training thread was made to wait and neither `opened` nor `closed` tells of it.
  void stood_still(int64_t duration_ns);
  // Mean of the newest steps; 0: none is known.
  int64_t usual_step_ns() const {
    return open_ && inside_.count != 0 ? inside_.mean(8) : plain_.mean(8);
  }
  // Before `closed`: the step accounting of the window that ends now.
  WindowCost cost_so_far() const;

  // API and control file; honoured in order. A requested window stays open until it is asked to
  // close; an open one becomes a requested one. One that another tool interrupts comes back.
  void request(bool open, const char* reason, uint64_t at_step = 0);

  bool open() const { return open_; }
  bool stopped() const { return stopped_; }  // -d or --steps reached: nothing more
  uint32_t windows() const { return windows_; }
  // An open window as far as it has come.
  int64_t spent_ns() const {
    return spent_ns_ + (open_ ? window_cost_ns() : 0) + (idle_excess_ns_ > 0 ? idle_excess_ns_ : 0);
  }
  int64_t next_open_ns() const { return next_open_ns_; }
  // The step number at which a tick is wanted at once; 0: none. For ranks that must agree.
  uint64_t next_step_of_interest() const;

 private:
  struct Steps {  // durations, newest last
    int64_t ns[64];
    uint32_t count = 0;
    void add(int64_t duration_ns);
    int64_t mean(uint32_t last) const;
    int64_t median() const;
  };

  void note_steps(const SchedulerInput& input);
  void account();
  bool alike(const Steps& steps, uint32_t block) const;
  bool steady() const;
  bool silent(const SchedulerInput& input, int64_t since_ns) const;
  void note_flow(const SchedulerInput& input);
  bool more_is_cheap(uint64_t steps) const;
  int64_t window_cost_ns() const;
  uint64_t aligned_after(uint64_t step) const;
  bool take_request(const SchedulerInput& input, SchedulerDecision* decision);
  SchedulerDecision when_closed(const SchedulerInput& input);
  SchedulerDecision when_open(const SchedulerInput& input);
  bool blocked(const SchedulerInput& input);

  SchedulerOptions options_;
  int64_t start_ns_ = 0;
  bool open_ = false;
  bool stopped_ = false;
  bool gave_up_ = false;  // attaching can never work in this process
  WindowRequests requests_;
  bool requested_window_ = false;
  const char* requested_reason_ = "";

  // A tick that sees several steps spreads their time evenly.
  Steps plain_ = {};
  Steps inside_ = {};
  uint64_t steps_seen_ = 0;
  int64_t last_step_ns_ = 0;
  // The step that the last attach or detach fell into: 0 none, 1 attach, 2 detach.
  int straddling_ = 0;

  int64_t now_ns_ = 0;  // of the last tick, opening or closing
  int64_t open_ns_ = 0;
  uint64_t open_step_ = 0;
  int64_t inside_sum_ns_ = 0;
  uint32_t inside_steps_ = 0;
  uint64_t open_records_ = 0;  // of the open window, at the last tick
  int64_t flow_ns_ = 0;        // of the open window: time with work for the device
  int64_t flow_look_ns_ = 0;
  uint64_t flow_records_ = 0;
  int64_t attach_ns_ = 0;
  int64_t detach_ns_ = 0;
  int64_t closed_ns_ = 0;
  bool blind_ = false;            // no step has ended by the end of the last window
  int64_t first_excess_ns_ = -1;  // of the straddling steps, against plain ones; -1: unknown
  int64_t last_excess_ns_ = -1;
  int64_t spent_before_ns_ = 0;
  bool stayed_attached_ = false;
  int64_t detached_step_ns_ = 0;  // median before CUPTI was attached for good
  int64_t idle_excess_ns_ = 0;    // of steps between windows, against that; may be negative

  uint32_t windows_ = 0;
  int64_t spent_ns_ = 0;
  int64_t gap_ns_ = 0;
  int64_t next_open_ns_ = 0;
  int64_t next_by_cost_ns_ = 0;
  uint64_t next_aligned_step_ = kFirstAlignedStep;
  int64_t blocked_since_ns_ = 0;
};

}  // namespace idlescope::session
