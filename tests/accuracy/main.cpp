// idlescope-accuracy: scores the analyzer on recordings with known truth.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/accuracy/tally.h"

int main(int argc, char** argv) {
  namespace accuracy = idlescope::accuracy;
  namespace fs = std::filesystem;
  CLI::App app{"Scores the analyzer on simulated recordings (directories with truth.pb)."};
  std::string in;
  std::string json;
  std::string worst;
  std::string set = "unnamed";
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  app.add_option("directory", in, "Directory of recordings")->required();
  app.add_option("--json", json, "Write all numbers here");
  app.add_option("--failures", worst, "Write the recordings that went wrong here");
  app.add_option("--set", set, "Name of the set");
  app.add_option("--jobs", jobs, "Recordings scored at the same time");
  CLI11_PARSE(app, argc, argv);

  std::vector<std::string> directories;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(in, error)) {
    if (fs::exists(entry.path() / "truth.pb")) directories.push_back(entry.path());
  }
  if (directories.empty()) {
    std::fprintf(stderr, "idlescope-accuracy: no recordings with truth.pb in %s\n", in.c_str());
    return 2;
  }
  std::sort(directories.begin(), directories.end());
  std::vector<accuracy::Score> scores(directories.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned j = 0; j < jobs; ++j) {
    workers.emplace_back([&] {
      for (size_t i = next++; i < directories.size(); i = next++) {
        try {
          scores[i] = accuracy::score_recording(directories[i]);
        } catch (const std::exception& bug) {  // an invariant of the analyzer
          scores[i].name = fs::path(directories[i]).filename();
          scores[i].fault = bug.what();
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (!json.empty()) std::ofstream(json) << accuracy::to_json(set, scores);
  if (!worst.empty()) std::ofstream(worst) << accuracy::failures(scores);
  std::fputs(accuracy::to_table(scores).c_str(), stdout);
  return 0;
}
