// `idlescope ctl [DIR] start|stop|status`: steers the recorder of a running job.
//
// In: the recording directory. Out: a request in its control file, then a look at the growing
// files until it has been honoured; or, for status, one line a process on stdout. The job is
// not signalled and not waited for.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "analysis/report/text.h"
#include "analysis/report/words.h"
#include "proto/messages.h"
#include "tools/control_file.h"
#include "tools/exit_codes.h"
#include "tools/input_paths.h"
#include "tools/job_identity.h"
#include "tools/live_progress.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/units.h"

namespace idlescope::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A request is seen within 0.2 s and an attach takes up to a second; then we say that it waits.
constexpr milliseconds kPatience{5000};
constexpr milliseconds kPoll{200};
// Ranks look at different moments: they begin together at a step so far ahead.
constexpr milliseconds kRateLook{600};
constexpr double kAheadS = 1.0;

struct CtlOptions {
  std::vector<std::string> words;
  std::string lang;
};

std::string here() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  return name;
}

enum class Life { kRunning, kEnded, kElsewhere };

Life life_of(const LiveProcess& process) {
  if (process.name.host != here()) return Life::kElsewhere;
  return has_ended(process.name, process.name.host) ? Life::kEnded : Life::kRunning;
}

class Ctl {
 public:
  Ctl(std::string directory, report::Language language)
      : directory_(std::move(directory)), language_(language) {}

  int run(const std::string& verb) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory_, error)) {
      say_error(messages::kFileMissing,
                {{"path", directory_},
                 {"reason", error ? error.message() : std::string("not a directory")}});
      return kBadInput;
    }
    const std::vector<LiveProcess> processes = live_processes(directory_);
    if (verb == "status") return status(processes);
    if (processes.empty()) return refuse(messages::kCtlNoProcess);
    if (std::all_of(processes.begin(), processes.end(),
                    [](const LiveProcess& p) { return life_of(p) == Life::kEnded; })) {
      return refuse(messages::kCtlEnded);
    }
    return steer(verb == "start");
  }

 private:
  std::string words(const messages::Message& message, const messages::Values& values = {}) const {
    return messages::fill(report::render(message, language_), values);
  }

  int refuse(const messages::Message& message) const {
    const std::string text = words(message);
    say_error({message.id, text}, {{"directory", directory_}});
    return kBadInput;
  }

  void tell(const messages::Message& message, const messages::Values& values = {}) const {
    const std::string text = words(message);
    say({message.id, text}, values);
  }

  // Those that a request concerns: they have initialised CUDA and still run.
  std::vector<LiveProcess> listeners() const {
    std::vector<LiveProcess> out;
    for (const LiveProcess& process : live_processes(directory_)) {
      const Life life = life_of(process);
      const bool hears = life == Life::kRunning
                             ? listens(process.name.pid)
                             : life == Life::kElsewhere && process.counts.windows_opened > 0;
      if (hears) out.push_back(process);
    }
    return out;
  }

  // The step at which all ranks can begin: those that are behind are not past it, the request
  // has reached everybody before. 0: one process, or no steps yet.
  uint64_t common_step() const {
    const auto furthest = [this](size_t* ranks) {
      uint64_t steps = 0;
      *ranks = 0;
      for (const LiveProcess& process : listeners()) {
        if (process.rank >= 0) ++*ranks;
        steps = std::max(steps, process.counts.steps);
      }
      return steps;
    };
    size_t ranks = 0;
    const uint64_t before = furthest(&ranks);
    if (ranks < 2) return 0;
    const auto begin = steady_clock::now();
    std::this_thread::sleep_for(kRateLook);
    const uint64_t after = furthest(&ranks);
    if (after == 0) return 0;
    const double passed_s = std::chrono::duration<double>(steady_clock::now() - begin).count();
    const double rate = static_cast<double>(after - before) / passed_s;
    return after + static_cast<uint64_t>(rate * kAheadS) + 2;
  }

  int steer(bool start) {
    const uint64_t step = start ? common_step() : 0;
    if (!append_control(directory_, {start, step})) {
      say_error(messages::kCannotWrite,
                {{"path", directory_ + "/" + kControlFile}, {"reason", std::strerror(errno)}});
      return kBadInput;
    }
    if (step != 0) tell(messages::kCtlAtStep, {{"step", std::to_string(step)}});
    const auto until = steady_clock::now() + kPatience;
    std::vector<LiveProcess> waiting;
    for (;;) {
      const std::vector<LiveProcess> all = listeners();
      waiting.clear();
      for (const LiveProcess& process : all) {
        if (process.window_open() != start) waiting.push_back(process);
      }
      if (waiting.empty() && (!all.empty() || !start)) {
        if (start) {
          tell(messages::kCtlOpen, {{"processes", names(all)}});
        } else {
          tell(messages::kCtlClosed);
        }
        return kOk;
      }
      if (steady_clock::now() >= until) break;
      std::this_thread::sleep_for(kPoll);
    }
    tell(messages::kCtlPending,
         {{"seconds",
           std::to_string(std::chrono::duration_cast<std::chrono::seconds>(kPatience).count())},
          {"processes", waiting.empty() ? directory_ : names(waiting)},
          {"directory", directory_}});
    return kOk;
  }

  static std::string name_of(const LiveProcess& process) {
    std::string out = process.name.host + "." + std::to_string(process.name.pid);
    if (process.rank >= 0) out = "rank " + std::to_string(process.rank) + " (" + out + ")";
    return out;
  }

  static std::string names(const std::vector<LiveProcess>& processes) {
    std::string out;
    for (size_t i = 0; i < processes.size() && i < 4; ++i) {
      out += (i == 0 ? "" : ", ") + name_of(processes[i]);
    }
    if (processes.size() > 4) out += ", …";
    return out;
  }

  int status(const std::vector<LiveProcess>& processes) const {
    if (processes.empty()) {
      const std::filesystem::path folder(directory_);
      if (std::filesystem::exists(folder / "run.json")) return refuse(messages::kCtlNoProcess);
      say_error(messages::kDirectoryEmpty, {{"path", directory_}});
      return kBadInput;
    }
    size_t others = 0;
    for (const LiveProcess& process : processes) {
      const LiveCounts& counts = process.counts;
      if (counts.windows_opened == 0 && counts.steps == 0 && !process.is_main) {
        ++others;
        continue;
      }
      const Life life = life_of(process);
      const std::string state = life == Life::kRunning ? words(messages::kCtlRunning)
                                : life == Life::kEnded
                                    ? words(messages::kCtlProcessEnded)
                                    : words(messages::kCtlElsewhere, {{"host", process.name.host}});
      // A window of a process that was killed stays open in its file.
      const bool open = process.window_open() && life != Life::kEnded;
      const std::string windows = words(open ? messages::kCtlWindowOpen : messages::kCtlWindows,
                                        {{"count", std::to_string(counts.windows_opened)}});
      std::cout << words(messages::kCtlProcess, {{"process", name_of(process)},
                                                 {"steps", std::to_string(counts.steps)},
                                                 {"windows", windows},
                                                 {"size", format_size(process.bytes)},
                                                 {"state", state}})
                << '\n';
    }
    if (others > 0) {
      std::cout << words(messages::kCtlWorkers, {{"count", std::to_string(others)}}) << '\n';
    }
    return kOk;
  }

  std::string directory_;
  report::Language language_;
};

int run_ctl(const CtlOptions& options) {
  constexpr const char* kVerbs = "start, stop or status";
  const auto is_verb = [](const std::string& word) {
    return word == "start" || word == "stop" || word == "status";
  };
  const std::vector<std::string>& words = options.words;
  if (words.empty() || words.size() > 2 || !is_verb(words.back())) {
    throw UsageError(std::string("ctl: expected [DIR] and then ") + kVerbs);
  }
  std::string directory;
  if (words.size() == 2) {
    directory = words[0];
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  } else {
    const std::optional<std::string> newest = newest_recording(".");
    if (!newest) {
      say_error(messages::kNoRecordingHere);
      return kBadInput;
    }
    directory = *newest;
  }
  const report::TextOptions rendering = report::options_for_terminal(
      false, report::ColourChoice::kNever, options.lang, process_environment());
  return Ctl(directory, rendering.language).run(words.back());
}

}  // namespace

void add_ctl(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<CtlOptions>();
  CLI::App* ctl = app.add_subcommand(
      "ctl",
      "Steer the recorder of a running job.\n"
      "\n"
      "  idlescope ctl idlescope-train-1130-141207 start   trace the GPU from now on\n"
      "  idlescope ctl status                              the newest recording here\n"
      "\n"
      "The host timeline (loader, steps, CPU) is recorded all the time.");
  ctl->add_option("WORDS", options->words, "[DIR] start, stop or status")->type_name("[DIR] VERB");
  ctl->add_option("--lang", options->lang, "Language of the lines (en, zh)");
  ctl->callback([options, &selected] { selected.run = [options] { return run_ctl(*options); }; });
}

}  // namespace idlescope::tools
