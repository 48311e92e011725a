// The recorded job as a child of the launcher: start it, pass signals on, wait for it.
//
// The job gets the terminal, the process group, the signal mask and the dispositions that
// the launcher was given, so that it behaves as without us. Signals are blocked here and
// taken by sigtimedwait: no handler runs, none is inherited.
//   * Ctrl-C and Ctrl-\ reach the job from the terminal; the launcher only notes them.
//   * TERM, USR1, USR2, CONT, HUP (and INT, QUIT sent to the launcher alone) are passed on.
//   * The launcher never ends before the job.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace idlescope::tools {

struct JobEnd {
  int wait_status = 0;
  bool interrupted = false;  // Ctrl-C while the job ran
  int termination = 0;       // TERM or HUP that was passed on; 0: none
  double wall_s = 0;
  int exit_code() const;  // the job's, or 128+signal
  int signal() const;     // that killed it; 0: none
};

class JobProcess {
 public:
  // The error is errno of the failed start (ENOENT: not found).
  static tl::expected<JobProcess, int> start(const std::vector<std::string>& command,
                                             const std::vector<std::string>& environment);
  pid_t pid() const { return pid_; }

  // Returns when the job has ended. `tick` is called about every `tick_s` seconds.
  JobEnd wait(double tick_s, const std::function<void()>& tick);

 private:
  pid_t pid_ = -1;
  double begin_s_ = 0;
};

// Runs our own program as a child after the job (the analysis), its stdout on our stderr.
// Ctrl-C and TERM end it, not us. Returns its wait status, or -1 if it could not start.
int run_after_job(const std::vector<std::string>& command);

}  // namespace idlescope::tools
