#include "profiler/session/window_scheduler.h"

namespace idlescope::session {
namespace {

// Launch-bound jobs run 1.11 times as long while attached (recorder.md I.1): the assumed cost
// of a window whose steps are not marked.
constexpr double kAssumedSlowdown = 0.15;

int64_t mean(const int64_t* values, uint32_t count) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += values[i];
  return count == 0 ? 0 : sum / count;
}

bool within(int64_t a, int64_t b, double share) {
  const auto difference = static_cast<double>(a < b ? b - a : a - b);
  return difference <= share * static_cast<double>(a < b ? b : a);
}

}  // namespace

void WindowScheduler::start(int64_t now_ns) { start_ns_ = now_ns; }

void WindowScheduler::note_steps(const SchedulerInput& input) {
  if (input.steps <= steps_seen_) return;
  const uint64_t fresh = input.steps - steps_seen_;
  if (last_step_ns_ != 0 && input.last_step_ns > last_step_ns_) {
    const int64_t each = (input.last_step_ns - last_step_ns_) / static_cast<int64_t>(fresh);
    if (skip_next_step_) {
      skip_next_step_ = false;
    } else if (open_) {
      inside_sum_ns_ += each * static_cast<int64_t>(fresh);
      inside_steps_ += static_cast<uint32_t>(fresh);
    } else {
      for (uint64_t i = 0; i < fresh && i < kHistory; ++i) {
        if (plain_count_ == kHistory) {
          for (uint32_t k = 1; k < kHistory; ++k) plain_[k - 1] = plain_[k];
          --plain_count_;
        }
        plain_[plain_count_++] = each;
      }
    }
  }
  steps_seen_ = input.steps;
  last_step_ns_ = input.last_step_ns;
}

// Two blocks of eight steps whose means agree within a quarter. Blocks, not single steps:
// jobs alternate between kinds of steps (two optimizers, gradient accumulation).
bool WindowScheduler::steady() const {
  if (plain_count_ < 16) return false;
  const int64_t* last = plain_ + plain_count_ - 8;
  return within(mean(last - 8, 8), mean(last, 8), 0.25);
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
  if (stopped_ || input.hands_off || input.now_ns < next_open_ns_) return {};
  if (windows_ != 0 && !input.reattach_allowed) return {};
  if (request_reason_ != nullptr && request_open_) {
    const char* reason = request_reason_;
    request_reason_ = nullptr;
    requested_window_ = true;
    return {SchedulerCommand::kOpen, reason};
  }
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
    if (input.now_ns - start_ns_ < kNoStepsStartNs) return {};
    return {SchedulerCommand::kOpen, "no steps seen"};
  }
  if (options_.several_ranks) {
    if (!aligned(input.steps)) return {};
    return {SchedulerCommand::kOpen, "same step on all ranks"};
  }
  if (windows_ == 0 && !steady()) {
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
  open_ = true;
  ++windows_;
  open_ns_ = now_ns;
  open_step_ = steps_seen_;
  inside_sum_ns_ = 0;
  inside_steps_ = 0;
  attach_ns_ = attach_ns;
  skip_next_step_ = true;
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
  cost.plain_steps = plain_count_ < inside_steps_ ? plain_count_ : inside_steps_;
  cost.plain_step_ns = mean(plain_ + plain_count_ - cost.plain_steps, cost.plain_steps);
  return cost;
}

void WindowScheduler::closed(int64_t now_ns, int64_t detach_ns) {
  const WindowCost cost = cost_so_far();
  int64_t slowed_ns = 0;
  if (cost.inside_steps != 0 && cost.plain_steps != 0) {
    slowed_ns = (cost.inside_step_ns - cost.plain_step_ns) * cost.inside_steps;
    if (slowed_ns < 0) slowed_ns = 0;
  } else {
    slowed_ns = static_cast<int64_t>(kAssumedSlowdown * static_cast<double>(now_ns - open_ns_));
  }
  const int64_t cost_ns = attach_ns_ + detach_ns + slowed_ns;
  spent_ns_ += cost_ns;
  open_ = false;
  requested_window_ = false;
  skip_next_step_ = true;

  // Such that, with the next window as dear as this one, all of them stay within the budget.
  const double budget = options_.budget > 0 ? options_.budget : 1e-6;
  const auto due_ns =
      start_ns_ + static_cast<int64_t>(static_cast<double>(spent_ns_ + cost_ns) / budget);
  gap_ns_ = gap_ns_ == 0 ? kFirstGapNs : gap_ns_ + gap_ns_ / 2;
  next_open_ns_ = now_ns + gap_ns_;
  if (options_.several_ranks) {
    next_open_ns_ = now_ns;  // the step number decides
  } else if (next_open_ns_ < due_ns) {
    next_open_ns_ = due_ns;
    gap_ns_ = due_ns - now_ns;
  }
}

}  // namespace idlescope::session
