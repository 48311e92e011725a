// The launcher as a parent: exit codes, signals and what the job inherits.
#include "tools/job_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace idlescope::tools {
namespace {

const std::vector<std::string> kEnvironment = {"PATH=/usr/bin:/bin"};

JobEnd run_shell(const std::string& script, const std::function<void(pid_t)>& started = {}) {
  auto job = JobProcess::start({"/bin/sh", "-c", script}, kEnvironment);
  EXPECT_TRUE(job);
  bool told = false;
  return job->wait(0.2, [&] {
    if (started && !told) started(job->pid());
    told = true;
  });
}

TEST(JobProcess, TheExitCodeIsTheJobs) {
  EXPECT_EQ(run_shell("exit 0").exit_code(), 0);
  EXPECT_EQ(run_shell("exit 4").exit_code(), 4);
  EXPECT_EQ(run_shell("exit 255").exit_code(), 255);
}

TEST(JobProcess, AKillingSignalIs128PlusItsNumber) {
  const JobEnd end = run_shell("kill -KILL $$");
  EXPECT_EQ(end.exit_code(), 128 + SIGKILL);
  EXPECT_EQ(end.signal(), SIGKILL);
  EXPECT_EQ(run_shell("kill -SEGV $$").exit_code(), 128 + SIGSEGV);
}

TEST(JobProcess, AFailedStartSaysWhy) {
  const auto missing = JobProcess::start({"/no/such/program"}, kEnvironment);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), ENOENT);
  const auto no_program = JobProcess::start({"/etc/passwd"}, kEnvironment);
  ASSERT_FALSE(no_program);
  EXPECT_EQ(no_program.error(), EACCES);
}

TEST(JobProcess, PassesSignalsToTheJob) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGINT}) {
    const char* name = sigabbrev_np(signal);
    const std::string script =
        std::string("trap 'exit 33' ") + name + "; while :; do sleep 0.05; done";
    const JobEnd end = run_shell(script, [&](pid_t) { kill(getpid(), signal); });
    EXPECT_EQ(end.exit_code(), 33) << name;
    EXPECT_EQ(end.termination, signal == SIGTERM || signal == SIGHUP ? signal : 0) << name;
    EXPECT_EQ(end.interrupted, signal == SIGINT) << name;
  }
}

TEST(JobProcess, TheJobInheritsMaskAndDispositions) {
  // Our signals are blocked in the launcher; the job must not see that. Of the four rows
  // only the caught one belongs to the shell.
  const JobEnd end = run_shell(
      "test \"$(grep SigBlk /proc/self/status | tr -d '0\\t ')\" = SigBlk: && "
      "test \"$(grep SigIgn /proc/self/status | tr -d '0\\t ')\" = SigIgn:");
  EXPECT_EQ(end.exit_code(), 0);
}

TEST(JobProcess, AnIgnoredSigchldStillGivesTheStatusAndIsInherited) {
  // The original disposition is read once per process, at the first start.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGCHLD, SIG_DFL);
    signal(SIGUSR2, SIG_IGN);
    auto job = JobProcess::start({"/bin/sh", "-c", "kill -USR2 $$; exit 7"}, kEnvironment);
    _exit(job ? job->wait(1, [] {}).exit_code() : 99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7) << "an ignored signal stays ignored in the job";
}

TEST(RunAfterJob, ReturnsTheStatus) {
  const int status = run_after_job({"/bin/sh", "-c", "exit 3"});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(run_after_job({"/no/such/program"}), -1);
}

}  // namespace
}  // namespace idlescope::tools
