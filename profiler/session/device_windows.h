// Carries out what the scheduler decides: attaches, detaches, keeps the accounts, and says
// what went wrong.
//
// In: the scheduler's commands, DeviceState, Tracer's outcomes. Out: windows and Status in
// the file, at most one line on stderr. Drain thread, except `prepare` (inside cuInit, before
// that thread exists).
#pragma once

#include <cstdint>

#include "profiler/cuda/tracer.h"
#include "profiler/session/control_file.h"
#include "profiler/session/options.h"
#include "profiler/session/window_scheduler.h"

namespace idlescope::session {

SchedulerOptions scheduler_options(const Options& options);

class DeviceWindows {
 public:
  explicit DeviceWindows(const Options& options);

  // Finds CUPTI; opens the first window at once if it is to hold everything.
  void prepare();
  void relax_capture_mode() const { tracer_.driver().relax_capture_mode(); }
  void tick();
  void collect(bool ask_cupti);
  void write() { tracer_.write(); }
  // At the end of the process: flushes the open window, does not finalize.
  void finish();
  bool open() const { return tracer_.attached(); }

 private:
  SchedulerInput facts() const;
  void take_requests();
  bool capture_open() const;
  bool hold();
  void let_go(bool booked);
  void publish_cost() const;
  void open_window(const char* reason, const SchedulerInput& decided);
  void close_window(const char* reason, const SchedulerInput& input, bool at_exit);
  bool may_finalize(const SchedulerInput& input);
  void attach_failed(const cuda::AttachOutcome& outcome);
  void say_stays(const cuda::DetachOutcome& outcome, const SchedulerInput& input);
  void publish();

  cuda::Tracer tracer_;
  WindowScheduler scheduler_;
  ControlFile control_;
  uint64_t wishes_seen_ = 0;
  bool full_detail_;
  bool detach_graphs_held_;
  uint32_t next_window_id_ = 1;
  int64_t opened_ns_ = 0;
  const char* closing_ = nullptr;  // reason of a close that has to wait; null: none
  uint32_t last_status_ = 0;
  bool said_stays_ = false;
};

}  // namespace idlescope::session
