#include "tools/job_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "tools/exit_codes.h"

extern char** environ;

namespace idlescope::tools {
namespace {

constexpr int kTaken[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD};

double now_s() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// What the launcher changes about signals, and how a child gets the original back.
struct SignalSetup {
  sigset_t taken;
  sigset_t original_mask;
  struct sigaction original_child {};
};

SignalSetup* setup_signals() {
  static SignalSetup* const setup = [] {
    static SignalSetup state;
    sigemptyset(&state.taken);
    for (const int signal : kTaken) sigaddset(&state.taken, signal);
    sigprocmask(SIG_BLOCK, &state.taken, &state.original_mask);
    // An ignored SIGCHLD would reap the job before we can read its status.
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &state.original_child);
    return &state;
  }();
  return setup;
}

pid_t spawn(const std::vector<std::string>& command, char** environment, bool stdout_to_stderr,
            int* error) {
  SignalSetup* setup = setup_signals();
  std::vector<char*> arguments = pointers(command);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    *error = errno;
    return -1;
  }
  const pid_t child = fork();
  if (child < 0) {
    *error = errno;
    close(report[0]);
    close(report[1]);
    return -1;
  }
  if (child == 0) {
    if (stdout_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
    sigaction(SIGCHLD, &setup->original_child, nullptr);
    sigprocmask(SIG_SETMASK, &setup->original_mask, nullptr);
    // execvpe takes PATH from the calling process, which is the launcher's own.
    execvpe(arguments[0], arguments.data(), environment);
    const int why = errno;
    const ssize_t written = write(report[1], &why, sizeof why);
    (void)written;
    _exit(kNotFound);
  }
  close(report[1]);
  int why = 0;
  ssize_t count;
  do {
    count = read(report[0], &why, sizeof why);
  } while (count < 0 && errno == EINTR);
  close(report[0]);
  if (count == static_cast<ssize_t>(sizeof why)) {
    waitpid(child, nullptr, 0);
    *error = why;
    return -1;
  }
  return child;
}

}  // namespace

int JobEnd::exit_code() const {
  return WIFSIGNALED(wait_status) ? kSignalBase + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int JobEnd::signal() const { return WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0; }

tl::expected<JobProcess, int> JobProcess::start(const std::vector<std::string>& command,
                                                const std::vector<std::string>& environment) {
  JobProcess job;
  int error = 0;
  std::vector<char*> variables = pointers(environment);
  job.begin_s_ = now_s();
  job.pid_ = spawn(command, variables.data(), false, &error);
  if (job.pid_ < 0) return tl::unexpected(error);
  return job;
}

JobEnd JobProcess::wait(double tick_s, const std::function<void()>& tick) {
  SignalSetup* setup = setup_signals();
  JobEnd end;
  double next_tick_s = now_s() + tick_s;
  while (waitpid(pid_, &end.wait_status, WNOHANG) == 0) {
    const double left_s = next_tick_s - now_s();
    if (left_s <= 0) {
      tick();
      next_tick_s = now_s() + tick_s;
      continue;
    }
    timespec limit{};
    limit.tv_sec = static_cast<time_t>(left_s);
    limit.tv_nsec = static_cast<long>((left_s - static_cast<double>(limit.tv_sec)) * 1e9);
    siginfo_t info{};
    const int signal = sigtimedwait(&setup->taken, &info, &limit);
    if (signal <= 0 || signal == SIGCHLD) continue;
    // si_code > 0: from the kernel, that is from the terminal, which sends to the whole
    // foreground process group: the job has it already.
    const bool job_has_it = info.si_code > 0;
    if (signal == SIGINT) end.interrupted = true;
    if (signal == SIGTERM || signal == SIGHUP) end.termination = signal;
    if (!job_has_it) kill(pid_, signal);
  }
  end.wall_s = now_s() - begin_s_;
  return end;
}

int run_after_job(const std::vector<std::string>& command) {
  SignalSetup* setup = setup_signals();
  int error = 0;
  const pid_t child = spawn(command, environ, true, &error);
  if (child < 0) return -1;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    timespec limit{0, 200'000'000};
    siginfo_t info{};
    const int signal = sigtimedwait(&setup->taken, &info, &limit);
    if (signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP) {
      // From the terminal the analysis has it too; twice does no harm there.
      kill(child, SIGTERM);
    }
  }
  return status;
}

}  // namespace idlescope::tools
