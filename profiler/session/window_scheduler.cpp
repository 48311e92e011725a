#include "profiler/session/window_scheduler.h"

namespace idlescope::session {
namespace {

// Launch-bound jobs run 1.11 times as long while attached (recorder.md I.1): the assumed cost
// of a window whose steps are not marked.
constexpr double kAssumedSlowdown = 0.15;
// … but not more than a launch and the calls around it cost (docs/overhead.md, per call), so
// that an idle device costs nothing.
constexpr int64_t kAssumedRecordNs = 5'000;

bool within(int64_t a, int64_t b, double share) {
  const auto difference = static_cast<double>(a < b ? b - a : a - b);
  return difference <= share * static_cast<double>(a < b ? b : a);
}

}  // namespace

void WindowScheduler::start(int64_t now_ns) { start_ns_ = now_ns; }

void WindowScheduler::Steps::add(int64_t duration_ns) {
  constexpr uint32_t kCapacity = sizeof ns / sizeof ns[0];
  if (count == kCapacity) {
    for (uint32_t i = 1; i < kCapacity; ++i) ns[i - 1] = ns[i];
    --count;
  }
  ns[count++] = duration_ns;
}

int64_t WindowScheduler::Steps::mean(uint32_t last) const {
  if (last > count) last = count;
  int64_t sum = 0;
  for (uint32_t i = count - last; i < count; ++i) sum += ns[i];
  return last == 0 ? 0 : sum / last;
}

int64_t WindowScheduler::Steps::median() const {
  int64_t sorted[sizeof ns / sizeof ns[0]];
  for (uint32_t i = 0; i < count; ++i) {  // insertion sort: at most 64
    uint32_t at = i;
    for (; at > 0 && sorted[at - 1] > ns[i]; --at) sorted[at] = sorted[at - 1];
    sorted[at] = ns[i];
  }
  return count == 0 ? 0 : sorted[count / 2];
}

void WindowScheduler::note_steps(const SchedulerInput& input) {
  if (input.steps <= steps_seen_) return;
  uint64_t fresh = input.steps - steps_seen_;
  if (last_step_ns_ != 0 && input.last_step_ns > last_step_ns_) {
    const int64_t each = (input.last_step_ns - last_step_ns_) / static_cast<int64_t>(fresh);
    if (straddling_ != 0) {
      // Several steps at once: the stall is spread over them, so their sum counts.
      const int64_t excess =
          input.last_step_ns - last_step_ns_ - plain_.median() * static_cast<int64_t>(fresh);
      int64_t& where = straddling_ == 1 ? first_excess_ns_ : last_excess_ns_;
      if (plain_.count != 0) where = excess < 0 ? 0 : excess;
      const bool detached = straddling_ == 2;
      straddling_ = 0;
      if (detached) account();
    } else {
      if (!open_ && stayed_attached_ && detached_step_ns_ != 0) {
        idle_excess_ns_ += (each - detached_step_ns_) * static_cast<int64_t>(fresh);
      }
      for (uint64_t i = 0; i < fresh && i < 64; ++i) (open_ ? inside_ : plain_).add(each);
      if (open_) {
        inside_sum_ns_ += each * static_cast<int64_t>(fresh);
        inside_steps_ += static_cast<uint32_t>(fresh);
      }
    }
  }
  steps_seen_ = input.steps;
  last_step_ns_ = input.last_step_ns;
}

// The newest steps in two blocks whose means agree within a quarter. Blocks, not single steps:
// jobs alternate between kinds of steps (two optimizers, gradient accumulation).
bool WindowScheduler::alike(const Steps& steps, uint32_t block) const {
  if (steps.count < 2 * block) return false;
  const int64_t last = steps.mean(block);
  return within(2 * steps.mean(2 * block) - last, last, 0.25);
}

bool WindowScheduler::steady() const {
  const bool slow = plain_.mean(kSteadyBlock) >= kSlowStepNs;
  return alike(plain_, slow ? kSteadySlowBlock : kSteadyBlock);
}

// True if no step has ended for long, counted from `since_ns` at the earliest, in a job that
// has had steps: its loop goes on in a way that nobody marks, or it does something else.
bool WindowScheduler::silent(const SchedulerInput& input, int64_t since_ns) const {
  if (input.steps == 0) return false;
  // Not for ever: the end of a compilation that died may never be announced.
  const bool compiling =
      input.compiling && input.now_ns - input.last_preparation_ns < kStillWarmingNs;
  if (compiling) return false;
  int64_t limit_ns = kSilenceNs;
  const int64_t step_ns = usual_step_ns();
  // One step is known: the next may take as long as it likes.
  if (step_ns == 0 && !input.graphs_in_use) limit_ns = kOnlyWindowStartNs;
  if (limit_ns < kSilentSteps * step_ns) limit_ns = kSilentSteps * step_ns;
  int64_t from_ns = input.last_step_ns > since_ns ? input.last_step_ns : since_ns;
  if (from_ns < input.last_preparation_ns) from_ns = input.last_preparation_ns;
  return input.now_ns - from_ns > limit_ns;
}

// Counts the time in which device records came in quick succession.
void WindowScheduler::note_flow(const SchedulerInput& input) {
  open_records_ = input.records;
  const int64_t passed_ns = input.now_ns - flow_look_ns_;
  if (passed_ns < kFlowLookNs) return;
  if (input.records - flow_records_ >= kFlowRecords) flow_ns_ += passed_ns;
  flow_look_ns_ = input.now_ns;
  flow_records_ = input.records;
}

// The steps inside are as long as those before, as far as a few of each can tell, or those that
// a forecast still wants cost less than another window's attach and detach.
bool WindowScheduler::more_is_cheap(uint64_t steps) const {
  if (plain_.count < kSteadyBlock || inside_.count < kSteadyBlock) return false;
  const int64_t plain_ns = plain_.median();
  const int64_t inside_ns = inside_.median();
  const auto wanted = static_cast<int64_t>(kCheapWindowSteps - steps);
  return static_cast<double>(inside_ns) <= kCheapSlowdown * static_cast<double>(plain_ns) ||
         (inside_ns - plain_ns) * wanted <= attach_ns_ + detach_ns_;
}

uint64_t WindowScheduler::aligned_after(uint64_t step) const {
  if (step < kFirstAlignedStep) return kFirstAlignedStep;
  // Not by measured cost, which differs between ranks.
  const uint64_t growth = options_.budget >= 0.02 ? 2 : options_.budget >= 0.005 ? 4 : 8;
  uint64_t next = kSecondAlignedStep;
  while (next <= step) next *= growth;
  return next;
}

bool WindowScheduler::blocked(const SchedulerInput& input) {
  if (!input.capture_open) {
    blocked_since_ns_ = 0;
    return false;
  }
  if (blocked_since_ns_ == 0) blocked_since_ns_ = input.now_ns;
  return input.now_ns - blocked_since_ns_ < kCaptureLimitNs;
}

void WindowScheduler::request(bool open, const char* reason, uint64_t at_step) {
  requests_.push({open, reason, at_step});
}

// The front request, if now is its time. True: `decision` is made.
bool WindowScheduler::take_request(const SchedulerInput& input, SchedulerDecision* decision) {
  while (!requests_.empty()) {
    const WindowRequest request = requests_.front();
    if (input.steps < request.at_step) return false;
    requests_.pop();
    if (request.open == open_) {  // nothing to do, but an open window is now the user's
      requested_window_ = requested_window_ || open_;
      requested_reason_ = request.reason;
      continue;
    }
    if (request.open) {
      requested_window_ = true;
      requested_reason_ = request.reason;
    }
    *decision = {request.open ? SchedulerCommand::kOpen : SchedulerCommand::kClose, request.reason};
    return true;
  }
  return false;
}

SchedulerDecision WindowScheduler::tick(const SchedulerInput& input) {
  now_ns_ = input.now_ns;
  note_steps(input);
  if (gave_up_) return {};
  const bool over_time =
      options_.duration_ns != 0 && input.now_ns - start_ns_ >= options_.duration_ns;
  const bool over_steps = options_.steps != 0 && input.steps >= options_.steps;
  if (over_time || over_steps) stopped_ = true;
  if (blocked(input)) return {};
  return open_ ? when_open(input) : when_closed(input);
}

SchedulerDecision WindowScheduler::when_closed(const SchedulerInput& input) {
  if (stopped_ || input.hands_off) return {};
  if (windows_ != 0 && !input.reattach_allowed) return {};
  SchedulerDecision asked;
  if (take_request(input, &asked)) return asked;
  if (stayed_attached_ && options_.mode == WindowMode::kAuto) return {};
  // A window that saw no step says nothing about training: the first steps get another.
  const bool made_up = blind_ && input.steps != 0 && options_.mode == WindowMode::kAuto;
  if (input.now_ns < next_open_ns_ && !made_up) return {};
  switch (options_.mode) {
    case WindowMode::kOff:
      return {};
    case WindowMode::kFull:
      return {SchedulerCommand::kOpen, "full"};
    case WindowMode::kFixed:
      if (windows_ == 0 && input.steps >= options_.fixed_start) {
        return {SchedulerCommand::kOpen, "fixed"};
      }
      return {};
    case WindowMode::kAuto:
      break;
  }
  if (input.steps == 0) {
    // Start-up, inference, or a loop we cannot see.
    int64_t patience_ns = kNoStepsStartNs;
    if (input.steps_will_show) {
      patience_ns = input.reattach_sure ? kNoStepsYetStartNs : kOnlyWindowStartNs;
    }
    // The first step may be compiled for minutes: then it has not been waited for yet.
    const bool preparing =
        input.compiling || input.now_ns - input.last_preparation_ns < patience_ns;
    if (input.now_ns - start_ns_ < (preparing ? kStillWarmingNs : patience_ns)) return {};
    return {SchedulerCommand::kOpen, "no steps seen"};
  }
  if (input.now_ns >= next_by_cost_ns_ && silent(input, start_ns_)) {
    return {SchedulerCommand::kOpen, "steps have stopped"};
  }
  if (options_.several_ranks) {
    if (input.steps < next_aligned_step_) return {};
    return {SchedulerCommand::kOpen, "same step on all ranks"};
  }
  if ((windows_ == 0 || blind_) && !steady()) {
    if (input.steps >= kIrregularSteps) return {SchedulerCommand::kOpen, "steps of all lengths"};
    if (input.now_ns - start_ns_ < kStillWarmingNs) return {};
    return {SchedulerCommand::kOpen, "still warming up"};
  }
  return {SchedulerCommand::kOpen, "steady steps"};
}

SchedulerDecision WindowScheduler::when_open(const SchedulerInput& input) {
  note_flow(input);
  if (input.hands_off) {
    if (requested_window_) requests_.push_front({true, requested_reason_, 0});
    requested_window_ = false;
    return {SchedulerCommand::kClose, "another tool"};
  }
  if (stopped_) return {SchedulerCommand::kClose, "limit of -d or --steps"};
  SchedulerDecision asked;
  if (take_request(input, &asked)) return asked;
  if (requested_window_ || options_.mode == WindowMode::kFull) return {};
  const uint64_t steps = input.steps - open_step_;
  if (options_.mode == WindowMode::kFixed) {
    if (steps >= options_.fixed_length) return {SchedulerCommand::kClose, "steps"};
    return {};
  }
  const int64_t age_ns = input.now_ns - open_ns_;
  if (input.records != 0 && silent(input, open_ns_)) {
    return {SchedulerCommand::kClose, "steps have stopped"};
  }
  if (options_.several_ranks && input.steps != 0) {
    // Time differs between ranks, so only the step number may decide.
    if (steps >= kWindowSteps) return {SchedulerCommand::kClose, "steps"};
    return {};
  }
  if (input.steps == 0) {
    if (flow_ns_ >= kNoStepsLengthNs || (age_ns >= kNoStepsMaxNs && input.records != 0)) {
      return {SchedulerCommand::kClose, "no steps seen"};
    }
    if (input.records >= kWindowMaxRecords) return {SchedulerCommand::kClose, "records"};
    return {};
  }
  // Never on seconds alone: a step of a large model may take half a minute.
  const bool changing =
      windows_ == 1 && steps < kFirstWindowMaxSteps && !alike(inside_, kWindowSteps / 3);
  const bool worth_more =
      steps < kCheapWindowSteps && age_ns < kCheapWindowMaxNs && more_is_cheap(steps);
  if (steps >= kWindowSteps && age_ns >= kWindowMinNs && !changing && !worth_more) {
    return {SchedulerCommand::kClose, "steps"};
  }
  // Two steps are worth more records; a loop without marks is not.
  if (input.records >= kWindowMaxRecords && (steps >= 2 || input.records / 4 >= kWindowMaxRecords))
    return {SchedulerCommand::kClose, "records"};
  return {};
}

void WindowScheduler::opened(int64_t now_ns, int64_t attach_ns) {
  if (straddling_ == 2) account();
  open_ = true;
  ++windows_;
  now_ns_ = now_ns;
  open_ns_ = now_ns;
  open_step_ = steps_seen_;
  open_records_ = 0;
  flow_ns_ = 0;
  flow_look_ns_ = now_ns;
  flow_records_ = 0;
  inside_.count = 0;
  inside_sum_ns_ = 0;
  inside_steps_ = 0;
  attach_ns_ = attach_ns;
  straddling_ = 1;
  first_excess_ns_ = -1;
  last_excess_ns_ = -1;
  next_aligned_step_ = aligned_after(steps_seen_);
}

void WindowScheduler::open_failed(int64_t now_ns, bool try_again) {
  gave_up_ = !try_again;
  requested_window_ = false;
  next_open_ns_ = now_ns + kTakenRetryNs;
}

WindowCost WindowScheduler::cost_so_far() const {
  WindowCost cost;
  cost.inside_steps = inside_steps_;
  cost.inside_step_ns = inside_steps_ == 0 ? 0 : inside_sum_ns_ / inside_steps_;
  cost.plain_steps = plain_.count < inside_steps_ ? plain_.count : inside_steps_;
  cost.plain_step_ns = plain_.mean(cost.plain_steps);
  return cost;
}

void WindowScheduler::closed(int64_t now_ns, int64_t detach_ns, bool stayed_attached) {
  open_ = false;
  if (stayed_attached && !stayed_attached_) detached_step_ns_ = plain_.median();
  stayed_attached_ = stayed_attached;
  requested_window_ = false;
  now_ns_ = now_ns;
  closed_ns_ = now_ns;
  blind_ = steps_seen_ == 0;
  detach_ns_ = detach_ns;
  straddling_ = 2;
  spent_before_ns_ = spent_ns_;
  gap_ns_ = gap_ns_ == 0 ? kFirstGapNs : gap_ns_ + gap_ns_ / 2;
  account();
}

void WindowScheduler::stood_still(int64_t duration_ns) {
  spent_before_ns_ += duration_ns;
  spent_ns_ += duration_ns;
}

// Of the window that is open or was closed last. A stall is never longer than the attach or
// detach that caused it: what such a step took beyond that (a checkpoint) is not ours.
int64_t WindowScheduler::window_cost_ns() const {
  int64_t slowed_ns = 0;
  if (inside_steps_ != 0 && plain_.count != 0) {
    slowed_ns = (inside_.median() - plain_.median()) * inside_steps_;
  } else {
    const int64_t length_ns =
        inside_steps_ != 0 ? inside_sum_ns_ : (open_ ? now_ns_ : closed_ns_) - open_ns_;
    slowed_ns = static_cast<int64_t>(kAssumedSlowdown * static_cast<double>(length_ns));
    const auto most_ns = kAssumedRecordNs * static_cast<int64_t>(open_records_);
    if (slowed_ns > most_ns) slowed_ns = most_ns;
  }
  if (slowed_ns < 0) slowed_ns = 0;
  const auto stall = [](int64_t excess_ns, int64_t limit_ns) {
    return excess_ns < 0 || excess_ns > limit_ns ? limit_ns : excess_ns;
  };
  int64_t cost_ns = slowed_ns + stall(first_excess_ns_, attach_ns_);
  if (!open_) cost_ns += stall(last_excess_ns_, detach_ns_);
  return cost_ns;
}

// Books the window that was closed last; again when the step that the detach fell into has
// ended.
void WindowScheduler::account() {
  const int64_t cost_ns = window_cost_ns();
  spent_ns_ = spent_before_ns_ + cost_ns;

  // The next window will cost what this one did, or what they did on average.
  const int64_t mean_ns = windows_ == 0 ? 0 : spent_ns_ / windows_;
  const int64_t expected_ns = spent_ns_ + (cost_ns > mean_ns ? cost_ns : mean_ns);
  const double budget = options_.budget > 0 ? options_.budget : 1e-6;
  const auto due_ns = start_ns_ + static_cast<int64_t>(static_cast<double>(expected_ns) /
                                                       (kPlannedShareOfBudget * budget));
  next_by_cost_ns_ = closed_ns_ + gap_ns_ < due_ns ? due_ns : closed_ns_ + gap_ns_;
  // Of ranks the step number decides; what is to hold everything knows no budget.
  const bool at_once = options_.several_ranks || options_.mode == WindowMode::kFull;
  next_open_ns_ = at_once ? closed_ns_ : next_by_cost_ns_;
}

uint64_t WindowScheduler::next_step_of_interest() const {
  if (!requests_.empty() && requests_.front().at_step > steps_seen_) {
    return requests_.front().at_step;
  }
  if (open_) {
    if (options_.mode == WindowMode::kFixed) return open_step_ + options_.fixed_length;
    return options_.several_ranks ? open_step_ + kWindowSteps : 0;
  }
  if (options_.mode == WindowMode::kFixed && windows_ == 0) return options_.fixed_start;
  return options_.several_ranks ? next_aligned_step_ : 0;
}

}  // namespace idlescope::session
