// idlescope-simulate: writes recordings of simulated training jobs with their truth.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "analysis/simulate/loop_program.h"
#include "analysis/simulate/scenario_sets.h"

namespace {

using idlescope::simulate::Scenario;
namespace simulate = idlescope::simulate;
namespace fs = std::filesystem;

bool write_file(const fs::path& path, const google::protobuf::MessageLite& message) {
  std::ofstream out(path, std::ios::binary);
  return message.SerializeToOstream(&out) && out.flush();
}

// One directory: the recorded files and truth.pb.
bool write_scenario(Scenario scenario, const fs::path& directory) {
  simulate::tune(&scenario);
  simulate::LoopSpec job = simulate::job(scenario);
  simulate::Program program = simulate::build_loop(job);
  simulate::Execution run = simulate::execute(program);
  if (!run.complete) {
    std::fprintf(stderr, "idlescope-simulate: %s: the job never ends\n", scenario.name.c_str());
    return false;
  }
  fs::path place = directory / scenario.name;
  std::error_code error;
  fs::create_directories(place, error);
  bool written = true;
  for (const simulate::RecordedProcess& process : simulate::record(program, run, scenario.view)) {
    written = write_file(place / process.file_name, process.trace) && written;
  }
  written = write_file(place / "truth.pb", simulate::truth_of(scenario, program, run)) && written;
  if (!written) std::fprintf(stderr, "idlescope-simulate: cannot write %s\n", place.c_str());
  return written;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Writes recordings of simulated training jobs, each with its truth (truth.pb)."};
  std::string set;
  std::string out = "simulated";
  std::string cause;
  std::string mechanism;
  std::string profile = "clean";
  double severity = 0.2;
  uint64_t seed = 1;
  size_t count = 0;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool list = false;
  app.add_option("--set", set, "A whole set: tuning, reporting, or reporting1 (older seeds)")
      ->check(CLI::IsMember({"tuning", "reporting", "reporting1"}));
  app.add_option("--out", out, "Directory; one sub-directory a recording");
  app.add_option("--count", count, "Take so many of the set, evenly spread");
  app.add_option("--cause", cause, "One recording with this cause; none: a healthy job");
  app.add_option("--mechanism", mechanism, "How the cause comes about");
  app.add_option("--severity", severity, "Share of the step that removing the cause saves")
      ->check(CLI::Range(0.0, 0.8));
  app.add_option("--profile", profile, "What the recorder gets wrong")
      ->check(CLI::IsMember({"clean", "skew", "lossy", "sparse"}));
  app.add_option("--seed", seed, "Everything random follows from it");
  app.add_option("--jobs", jobs, "Recordings made at the same time");
  app.add_flag("--list", list, "List causes and mechanisms");
  CLI11_PARSE(app, argc, argv);

  if (list) {
    for (const simulate::Mechanism& m : simulate::mechanisms()) {
      std::printf("%-16s %-24s %s\n", m.cause, m.name, m.reporting ? "reporting only" : "");
    }
    return 0;
  }
  std::vector<Scenario> scenarios;
  if (!set.empty()) {
    scenarios = simulate::scenario_set(set, count);
  } else if (!cause.empty()) {
    if (cause != "none" && simulate::find_mechanism(cause, mechanism) == nullptr) {
      std::fprintf(stderr, "idlescope-simulate: no cause %s %s (see --list)\n", cause.c_str(),
                   mechanism.c_str());
      return 2;
    }
    scenarios.push_back(simulate::single_scenario(cause, mechanism, severity, profile, seed));
  } else {
    std::fprintf(stderr, "idlescope-simulate: say --set or --cause\n");
    return 2;
  }
  std::atomic<size_t> next{0};
  std::atomic<bool> good{true};
  std::vector<std::thread> workers;
  for (unsigned j = 0; j < jobs; ++j) {
    workers.emplace_back([&] {
      for (size_t i = next++; i < scenarios.size(); i = next++) {
        if (!write_scenario(scenarios[i], out)) good = false;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return good ? 0 : 1;
}
