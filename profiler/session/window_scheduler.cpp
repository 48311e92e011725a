#include "profiler/session/window_scheduler.h"

namespace idlescope::session {
namespace {

// Launch-bound jobs run 1.11 times as long while attached (recorder.md I.1): the assumed cost
// of a window whose steps are not marked.
constexpr double kAssumedSlowdown = 0.15;

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

// Two blocks of eight steps whose means agree within a quarter. Blocks, not single steps:
// jobs alternate between kinds of steps (two optimizers, gradient accumulation).
bool WindowScheduler::steady() const {
  if (plain_.count < 16) return false;
  const int64_t last = plain_.mean(8);
  return within(2 * plain_.mean(16) - last, last, 0.25);
}

// 32, 64, 128, … and, once the gap between powers of two is long, their multiples.
bool WindowScheduler::aligned(uint64_t step) const { return step >= next_aligned_step_; }

bool WindowScheduler::blocked(const SchedulerInput& input) {
  if (!input.capture_open) {
    blocked_since_ns_ = 0;
    return false;
  }
  if (blocked_since_ns_ == 0) blocked_since_ns_ = input.now_ns;
  return input.now_ns - blocked_since_ns_ < kCaptureLimitNs;
}

void WindowScheduler::request(bool open, const char* reason) {
  request_open_ = open;
  request_reason_ = reason;
}

SchedulerDecision WindowScheduler::tick(const SchedulerInput& input) {
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
  if (request_reason_ != nullptr && request_open_) {
    const char* reason = request_reason_;
    request_reason_ = nullptr;
    requested_window_ = true;
    return {SchedulerCommand::kOpen, reason};
  }
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
    const int64_t patience_ns = input.steps_will_show ? kNoStepsYetStartNs : kNoStepsStartNs;
    if (input.now_ns - start_ns_ < patience_ns) return {};
    return {SchedulerCommand::kOpen, "no steps seen"};
  }
  if (options_.several_ranks) {
    if (!aligned(input.steps)) return {};
    return {SchedulerCommand::kOpen, "same step on all ranks"};
  }
  if ((windows_ == 0 || blind_) && !steady()) {
    if (input.now_ns - start_ns_ < kStillWarmingNs) return {};
    return {SchedulerCommand::kOpen, "still warming up"};
  }
  return {SchedulerCommand::kOpen, "steady steps"};
}

SchedulerDecision WindowScheduler::when_open(const SchedulerInput& input) {
  if (input.hands_off) return {SchedulerCommand::kClose, "another tool"};
  if (stopped_) return {SchedulerCommand::kClose, "limit of -d or --steps"};
  if (request_reason_ != nullptr && !request_open_) {
    const char* reason = request_reason_;
    request_reason_ = nullptr;
    return {SchedulerCommand::kClose, reason};
  }
  if (requested_window_ || options_.mode == WindowMode::kFull) return {};
  const uint64_t steps = input.steps - open_step_;
  if (options_.mode == WindowMode::kFixed) {
    if (steps >= options_.fixed_length) return {SchedulerCommand::kClose, "steps"};
    return {};
  }
  const int64_t age_ns = input.now_ns - open_ns_;
  if (options_.several_ranks && input.steps != 0) {
    // Time differs between ranks, so only the step number may decide.
    if (steps >= kWindowSteps) return {SchedulerCommand::kClose, "steps"};
    return {};
  }
  if (input.steps == 0) {
    if (age_ns >= kNoStepsLengthNs && input.records != 0) {
      return {SchedulerCommand::kClose, "no steps seen"};
    }
    if (input.records >= kWindowMaxRecords) return {SchedulerCommand::kClose, "records"};
    return {};
  }
  // Never on seconds alone: a step of a large model may take half a minute.
  if (steps >= kWindowSteps && age_ns >= kWindowMinNs) return {SchedulerCommand::kClose, "steps"};
  if (input.records >= kWindowMaxRecords && steps >= 2)
    return {SchedulerCommand::kClose, "records"};
  return {};
}

void WindowScheduler::opened(int64_t now_ns, int64_t attach_ns) {
  if (straddling_ == 2) account();
  open_ = true;
  ++windows_;
  open_ns_ = now_ns;
  open_step_ = steps_seen_;
  inside_.count = 0;
  inside_sum_ns_ = 0;
  inside_steps_ = 0;
  attach_ns_ = attach_ns;
  straddling_ = 1;
  first_excess_ns_ = -1;
  last_excess_ns_ = -1;
  while (next_aligned_step_ <= steps_seen_) next_aligned_step_ *= 2;
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
  closed_ns_ = now_ns;
  blind_ = steps_seen_ == 0;
  detach_ns_ = detach_ns;
  straddling_ = 2;
  spent_before_ns_ = spent_ns_;
  gap_ns_ = gap_ns_ == 0 ? kFirstGapNs : gap_ns_ + gap_ns_ / 2;
  account();
}

// Books the window that was closed last; again when the step that the detach fell into has
// ended. A stall is never longer than the attach or detach that caused it: what such a step
// took beyond that (a checkpoint) is not ours.
void WindowScheduler::account() {
  int64_t slowed_ns = 0;
  if (inside_steps_ != 0 && plain_.count != 0) {
    slowed_ns = (inside_.median() - plain_.median()) * inside_steps_;
  } else {
    const int64_t length_ns = inside_steps_ != 0 ? inside_sum_ns_ : closed_ns_ - open_ns_;
    slowed_ns = static_cast<int64_t>(kAssumedSlowdown * static_cast<double>(length_ns));
  }
  if (slowed_ns < 0) slowed_ns = 0;
  const auto stall = [](int64_t excess_ns, int64_t limit_ns) {
    return excess_ns < 0 || excess_ns > limit_ns ? limit_ns : excess_ns;
  };
  const int64_t cost_ns =
      slowed_ns + stall(first_excess_ns_, attach_ns_) + stall(last_excess_ns_, detach_ns_);
  spent_ns_ = spent_before_ns_ + cost_ns;

  // Such that, with the next window as dear as this one, all of them stay within the budget.
  const double budget = options_.budget > 0 ? options_.budget : 1e-6;
  const auto due_ns =
      start_ns_ + static_cast<int64_t>(static_cast<double>(spent_ns_ + cost_ns) / budget);
  next_open_ns_ = closed_ns_ + gap_ns_;
  if (options_.several_ranks) {
    next_open_ns_ = closed_ns_;  // the step number decides
  } else if (next_open_ns_ < due_ns) {
    next_open_ns_ = due_ns;
  }
}

uint64_t WindowScheduler::next_step_of_interest() const {
  if (open_) {
    if (options_.mode == WindowMode::kFixed) return open_step_ + options_.fixed_length;
    return options_.several_ranks ? open_step_ + kWindowSteps : 0;
  }
  if (options_.mode == WindowMode::kFixed && windows_ == 0) return options_.fixed_start;
  return options_.several_ranks ? next_aligned_step_ : 0;
}

}  // namespace idlescope::session
