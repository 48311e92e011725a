// A training job in virtual time, for tests of the window scheduler: steps, idle time, records
// and what the recorder costs are set by the test; what the scheduler did is in `log`.
#pragma once

#include <string>
#include <vector>

#include "profiler/session/window_scheduler.h"

namespace idlescope::session {

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1000 * kMs;

class TrainingJob {
 public:
  explicit TrainingJob(const SchedulerOptions& options = {}) : scheduler(options) {
    scheduler.start(now_ns);
  }

  WindowScheduler scheduler;
  int64_t now_ns = 100 * kSecond;
  int64_t step_ns = 50 * kMs;  // plain
  double slowdown = 1.0;       // inside
  int64_t attach_ns = 10 * kMs;
  int64_t detach_ns = 4 * kMs;
  bool stall = true;  // steps wait for attach and detach
  uint64_t records_per_step = 100;
  SchedulerInput facts;
  std::vector<std::string> log;  // "open reason@step"
  std::vector<int64_t> open_times;
  int64_t truly_spent_ns = 0;

  void tick(int64_t duration_ns = 20 * kMs) {
    now_ns += duration_ns;
    facts.now_ns = now_ns;
    const SchedulerDecision decision = scheduler.tick(facts);
    if (decision.command == SchedulerCommand::kOpen) {
      log.push_back(std::string("open ") + decision.reason + "@" + std::to_string(facts.steps));
      open_times.push_back(now_ns);
      if (stall) truly_spent_ns += attach_ns;
      scheduler.opened(now_ns, attach_ns);
      facts.records = 0;
      owed_ns_ += stall ? attach_ns : 0;
    }
    if (decision.command == SchedulerCommand::kClose) {
      log.push_back(std::string("close ") + decision.reason + "@" + std::to_string(facts.steps));
      if (stall) truly_spent_ns += detach_ns;
      scheduler.closed(now_ns, detach_ns);
      owed_ns_ += stall ? detach_ns : 0;
    }
  }
  // Steps of the job, the scheduler ticking after each.
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      const bool inside = scheduler.open();
      const auto took =
          static_cast<int64_t>(static_cast<double>(step_ns) * (inside ? slowdown : 1.0)) + owed_ns_;
      if (inside) truly_spent_ns += took - owed_ns_ - step_ns;
      owed_ns_ = 0;
      ++facts.steps;
      facts.records += records_per_step;
      facts.last_step_ns = now_ns + took;
      tick(took);
    }
  }
  // The process ends; an open window is flushed on the way out.
  void end() {
    if (!scheduler.open()) return;
    if (stall) truly_spent_ns += detach_ns;
    now_ns += detach_ns;
    scheduler.closed(now_ns, detach_ns, true);
  }
  void idle(int64_t duration_ns) {
    for (int64_t spent = 0; spent < duration_ns; spent += 20 * kMs) tick();
  }

 private:
  int64_t owed_ns_ = 0;
};

}  // namespace idlescope::session
