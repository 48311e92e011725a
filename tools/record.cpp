// `idlescope record [options] -- CMD…`: runs CMD with the recorder preloaded, then says
// what holds it back.
//
// The job's streams, exit code and signals are the job's. Ours goes to stderr, also the
// report at the end: the job's stdout may be piped into something.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>

#include "proto/messages.h"
#include "proto/run.pb.h"
#include "tools/command_search.h"
#include "tools/compact.h"
#include "tools/exit_codes.h"
#include "tools/job_process.h"
#include "tools/live_progress.h"
#include "tools/output_directory.h"
#include "tools/outside_reach.h"
#include "tools/record_options.h"
#include "tools/recorder_library.h"
#include "tools/run_file.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/units.h"
#include "tools/version.h"

extern char** environ;

namespace idlescope::tools {
namespace {

constexpr double kTickS = 0.5;
constexpr int kTicksPerCompaction = 20;

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Everything that is known before CMD starts.
struct Recording {
  RecordOptions options;
  std::vector<std::string> command;
  JobIdentity identity;
  RecordPlan plan;
  OutputDirectory directory;
  std::string library;  // empty: the job runs untouched
  std::optional<OutsideReach> outside;
  bool talks() const { return plan.speaks && !options.quiet; }
};

// The absolute path and, with it, the settings of the job.
int choose_output(Recording& recording) {
  const Environment environment = process_environment();
  std::string pattern = recording.options.output;
  if (pattern.empty()) {
    if (const char* set = environment("IDLESCOPE_OUTPUT")) pattern = set;
  }
  std::string path;
  if (pattern.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    path = default_directory_name(recording.command, recording.identity, local);
  } else {
    tl::expected<std::string, std::string> expanded =
        expand_pattern(pattern, recording.identity, environment);
    if (!expanded) throw UsageError(expanded.error());
    path = *expanded;
  }
  tl::expected<OutputDirectory, OutputFailure> made =
      make_output_directory(path, recording.options.force, recording.identity);
  if (!made) {
    if (made.error().error == OutputError::kExists) {
      say_error(messages::kOutputExists, {{"path", path}});
    } else {
      say_error(messages::kDirectoryFailed, {{"path", path}, {"reason", made.error().reason}});
    }
    return kRecordFailed;
  }
  recording.directory = *made;
  recording.plan.settings["IDLESCOPE_OUTPUT"] = made->path;
  return kOk;
}

run::Run describe(const Recording& recording) {
  run::Run run;
  run.set_tool(std::string("idlescope ") + kVersion);
  for (const std::string& word : recording.command) run.add_command(to_utf8(word));
  char buffer[4096];
  if (getcwd(buffer, sizeof buffer) != nullptr) run.set_working_directory(to_utf8(buffer));
  utsname system{};
  if (uname(&system) == 0) {
    run.set_host(to_utf8(system.nodename));
    run.set_kernel(to_utf8(system.release));
  }
  run.set_job_id(to_utf8(recording.identity.job_id));
  run.set_has_rank(recording.identity.rank.has_value());
  run.set_rank(recording.identity.rank.value_or(0));
  run.set_launcher_pid(getpid());
  run.set_begin_realtime_ns(clock_ns(CLOCK_REALTIME));
  run.set_begin_ns(clock_ns(CLOCK_MONOTONIC));
  run.set_library(to_utf8(recording.library));
  for (const auto& [name, value] : recording.plan.settings) {
    (*run.mutable_settings())[name] = to_utf8(value);
  }
  return run;
}

void save(const Recording& recording, const run::Run& run) {
  const std::string path = recording.directory.path + "/" + run_file_name(recording.identity);
  if (!write_run_file(path, run)) {
    say_error(messages::kFileFailed, {{"path", path}, {"reason", std::strerror(errno)}});
  }
}

// CMD could not be started: leave nothing behind.
int cannot_start(const Recording& recording, int error) {
  say_error(messages::kCommandNotFound,
            {{"command", recording.command[0]}, {"reason", std::strerror(error)}});
  const std::string file = recording.directory.path + "/" + run_file_name(recording.identity);
  unlink(file.c_str());
  if (recording.directory.created) rmdir(recording.directory.path.c_str());
  return error == ENOENT ? kNotFound : kCannotExecute;
}

std::string step_count(uint64_t steps) {
  return words(steps == 1 ? messages::kOneStep : messages::kManySteps,
               {{"steps", std::to_string(steps)}});
}

// Says once how far the recording is, and once if no step comes.
class Progress {
 public:
  Progress(const Recording& recording) : recording_(recording) {}

  // At every tick of the launcher.
  void look(double elapsed_s) {
    const bool needed =
        (recording_.talks() && !said_) ||
        (recording_.plan.stop_after_steps > 0 && steps_ < recording_.plan.stop_after_steps);
    if (!needed || elapsed_s < next_look_s_) return;
    const LiveCounts counts = count_live(recording_.directory.path);
    steps_ = counts.steps;
    // Reading takes longer as files grow: look more rarely.
    next_look_s_ = elapsed_s + std::min(30.0, 2.0 + elapsed_s / 10);
    if (!recording_.talks()) return;
    const bool first_window = counts.windows_closed > 0;
    const bool host_only = counts.windows_opened == 0 && counts.steps >= kStepsForAnAnswer;
    if (!said_ && (first_window || host_only)) {
      said_ = true;
      say(messages::kLookAnyTime, {{"counted", step_count(counts.steps)}});
    }
    if (!warned_ && counts.steps == 0 && counts.files > 0 && elapsed_s >= kNoStepWarningS) {
      warned_ = true;
      say(messages::kNoStepYet, {{"minutes", std::to_string(static_cast<int>(elapsed_s / 60))},
                                 {"workers", std::to_string(counts.workers_started)},
                                 {"ready", std::to_string(counts.batches_ready())}});
    }
  }
  uint64_t steps() const { return steps_; }

 private:
  static constexpr uint64_t kStepsForAnAnswer = 100;
  static constexpr double kNoStepWarningS = 300;
  const Recording& recording_;
  double next_look_s_ = 2;
  bool said_ = false;
  bool warned_ = false;
  uint64_t steps_ = 0;
};

void say_end(const Recording& recording, const JobEnd& end) {
  const std::string duration = format_duration(end.wall_s);
  if (end.termination != 0) {
    say(messages::kJobTerminated, {{"signal", end.termination == SIGTERM ? "SIGTERM" : "SIGHUP"},
                                   {"directory", recording.directory.shown}});
  } else if (end.interrupted) {
    say(recording.options.no_report ? messages::kJobInterruptedKept : messages::kJobInterrupted,
        {{"counted", step_count(count_live(recording.directory.path).steps)}});
  } else if (end.signal() != 0) {
    const char* name = sigabbrev_np(end.signal());
    say(messages::kJobKilled,
        {{"signal", name == nullptr ? std::to_string(end.signal()) : std::string("SIG") + name},
         {"duration", duration}});
  } else {
    say(messages::kJobEnded, {{"code", std::to_string(end.exit_code())}, {"duration", duration}});
  }
}

// The verdict, by a child of ours: whatever happens to it, the job's exit code stands.
void analyse_recording(const Recording& recording) {
  if (!recording.talks()) return;
  if (count_live(recording.directory.path).files == 0) {
    if (recording.outside) {
      say_error(
          messages::kNothingRecorded, {},
          words(messages::kNothingRecordedOutside, {{"program", recording.outside->program}}) +
              "\n" + recording.outside->better);
    } else {
      say_error(messages::kNothingRecorded, {}, words(messages::kNothingRecordedHelp));
    }
    return;
  }
  if (recording.options.no_report) return;
  std::vector<std::string> command = {"/proc/self/exe", "report", "--after-record",
                                      recording.directory.path};
  if (!recording.options.lang.empty()) {
    command.emplace_back("--lang");
    command.push_back(recording.options.lang);
  }
  if (recording.options.verbose) command.emplace_back("-v");
  const int status = run_after_job(command);
  if (status == -1 ||
      (WIFSIGNALED(status) && WTERMSIG(status) != SIGINT && WTERMSIG(status) != SIGTERM) ||
      (WIFEXITED(status) && WEXITSTATUS(status) == kOurBug)) {
    say_error(messages::kAnalysisFailed, {{"directory", recording.directory.shown}});
  } else if (WIFSIGNALED(status)) {
    say(messages::kAnalysisStopped);
  }
}

// The job runs and nothing is recorded: IDLESCOPE_DISABLE, or a rank that was not asked for.
int run_untouched(const std::vector<std::string>& command) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  tl::expected<JobProcess, int> job = JobProcess::start(command, environment);
  if (!job) {
    say_error(messages::kCommandNotFound,
              {{"command", command[0]}, {"reason", std::strerror(job.error())}});
    return job.error() == ENOENT ? kNotFound : kCannotExecute;
  }
  return job->wait(3600, [] {}).exit_code();
}

int run_record(const RecordOptions& options, const std::vector<std::string>& command) {
  if (command.empty()) throw UsageError(messages::kRecordNeedsCommand, {});
  Recording recording;
  recording.options = options;
  recording.command = command;
  const Environment environment = process_environment();
  recording.identity = identify_job(environment);
  tl::expected<RecordPlan, std::string> plan =
      plan_recording(options, recording.identity, environment);
  if (!plan) throw UsageError(plan.error());
  recording.plan = *plan;

  const char* disabled = environment("IDLESCOPE_DISABLE");
  const bool off = disabled != nullptr && std::string_view(disabled) == "1";
  if (off || !recording.plan.records_this_rank) return run_untouched(command);

  recording.outside = find_outside_reach(command, program_directory());
  if (recording.outside && recording.plan.speaks) {
    say_error(recording.outside->keep_preload ? messages::kPartlyOutside : messages::kOutsideReach,
              {{"program", recording.outside->program}}, recording.outside->better);
  }
  if (!recording.outside || recording.outside->keep_preload) {
    tl::expected<std::string, LibraryFailure> library = find_recorder_library();
    if (!library) {
      if (library.error().reason.empty()) {
        say_error(messages::kLibraryMissing, {{"paths", library.error().looked_at}});
      } else {
        say_error(messages::kLibraryUnusable, {{"reason", library.error().reason}});
      }
      return kRecordFailed;
    }
    recording.library = *library;
  }
  if (const int failed = choose_output(recording)) return failed;

  run::Run run = describe(recording);
  save(recording, run);
  // Before anything is promised: the command may not exist.
  if (const int error = command_error(command[0], environment("PATH"))) {
    return cannot_start(recording, error);
  }
  // Where the job starts outside our reach, nothing is promised.
  if (recording.talks() && (!recording.outside || recording.outside->keep_preload)) {
    say(messages::kRecordingTo, {{"directory", recording.directory.shown},
                                 {"limit", format_size(recording.plan.max_size_bytes)}});
    say(messages::kFirstAnswer);
  }
  tl::expected<JobProcess, int> job = JobProcess::start(
      command, job_environment(environ, recording.plan.settings, recording.library));
  if (!job) return cannot_start(recording, job.error());
  run.set_job_pid(job->pid());
  save(recording, run);

  Compactor compactor(recording.directory.path, run.host());
  Progress progress(recording);
  int ticks = 0;
  bool stop_sent = false;
  const auto tick = [&] {
    if (++ticks % kTicksPerCompaction == 0) compactor.compact_ended();
    const double elapsed_s = 1e-9 * static_cast<double>(clock_ns(CLOCK_MONOTONIC) - run.begin_ns());
    progress.look(elapsed_s);
    const RecordPlan& limits = recording.plan;
    const bool stop = (limits.stop_after_s > 0 && elapsed_s >= limits.stop_after_s) ||
                      (limits.stop_after_steps > 0 && progress.steps() >= limits.stop_after_steps);
    if (stop && !stop_sent) {
      stop_sent = true;
      kill(job->pid(), SIGINT);
    }
  };
  const JobEnd end = job->wait(kTickS, tick);

  run::End* at_end = run.mutable_end();
  at_end->set_end_ns(clock_ns(CLOCK_MONOTONIC));
  at_end->set_wall_ns(static_cast<int64_t>(end.wall_s * 1e9));
  at_end->set_exit_code(end.exit_code());
  at_end->set_signal(end.signal());
  at_end->set_interrupted(end.interrupted);
  save(recording, run);
  if (recording.talks()) say_end(recording, end);
  if (end.termination == 0) {  // a scheduler that sent TERM kills soon
    compactor.compact_ended();
    const std::string usage = recording.directory.path + "/" + run.host() + ".usage";
    if (compactor.all_ended()) unlink(usage.c_str());
    analyse_recording(recording);
  }
  return end.exit_code();
}

}  // namespace

void add_record(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* record = app.add_subcommand(
      "record",
      "Run a job with the recorder inside, then say what holds it back.\n"
      "\n"
      "  idlescope record -- python train.py\n"
      "  idlescope record -d 3m -o run7 -- torchrun --nproc-per-node 8 train.py\n"
      "\n"
      "The job's output, exit code and signals stay its own.");
  record->add_option("-o,--output", options->output,
                     "Directory of the recording (%h host, %p pid, %r rank, %q{VAR})");
  record->add_flag("-f,--force", options->force, "Overwrite the recording in that directory");
  record->add_option("-d,--duration", options->duration,
                     "Record that long (90s, 3m, 1h); the job goes on");
  record->add_option("--steps", options->steps, "Record that many steps; the job goes on");
  record->add_flag("--stop-job", options->stop_job,
                   "Send the job SIGINT after --duration or --steps");
  record->add_option("--ranks", options->ranks, "Record only these ranks (0 or 0,8)");
  record->add_option("--window", options->window,
                     "When the GPU is traced: auto, full, off, START+LENGTH in steps");
  record->add_option("--budget", options->budget,
                     "What tracing the GPU may cost, as a share of the run (1%)");
  record->add_option("--max-size", options->max_size, "Limit of the whole recording (2GB)");
  record->add_option("--detail", options->detail, "default, or full (all CUDA calls; slow)");
  record->add_option("--lang", options->lang, "Language of messages and report (en, zh)");
  record->add_flag("--no-report", options->no_report, "Do not analyse at the end");
  record->add_flag("-q,--quiet", options->quiet, "Errors only");
  record->add_flag("-v,--verbose", options->verbose, "Windows, versions, every process seen");
  record->footer(
      "Every option has a variable, IDLESCOPE_STEPS=500 and so on; IDLESCOPE_DISABLE=1\n"
      "turns all off. Exit code: the job's own, 128+n if signal n killed it; before it\n"
      "started 125 our failure, 126 cannot be executed, 127 not found.");
  record->prefix_command();  // `record python train.py` works without `--` too
  record->callback([record, options, &selected] {
    std::vector<std::string> command = record->remaining();
    if (!command.empty() && command[0].size() > 1 && command[0][0] == '-') {
      throw UsageError(messages::kUnknownOption,
                       {{"command", "record"}, {"option", command[0]}, {"suggestion", ""}});
    }
    if (!command.empty() && selected.has_dashes) command.emplace_back("--");
    command.insert(command.end(), selected.job.begin(), selected.job.end());
    selected.run = [options, command] { return run_record(*options, command); };
  });
}

}  // namespace idlescope::tools
