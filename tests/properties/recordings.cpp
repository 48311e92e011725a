#include "tests/properties/recordings.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "analysis/diagnose/diagnose.h"
#include "analysis/read/fault.h"
#include "analysis/read/read.h"
#include "analysis/read/recording.h"
#include "analysis/report/build.h"
#include "analysis/simulate/scenario_files.h"
#include "analysis/simulate/scenario_sets.h"
#include "analysis/simulate/special_scenarios.h"

namespace idlescope::test {
namespace {

namespace fs = std::filesystem;

struct Job {
  const char* cause;
  const char* mechanism;
  const char* profile;
  int64_t amount_ns;
};

// One of each kind of evidence: loader processes, two streams, collectives of several ranks,
// graphs, lost records, skewed clocks. The strength is set, not tuned: truth is not asked for.
constexpr Job kJobs[] = {
    {"data-storage", "shared-bandwidth", "clean", 12'000'000},
    {"data-cpu", "uneven-decode", "skew", 12'000'000},
    {"data-pin", "slow-pin-thread", "lossy", 8'000'000},
    {"epoch-restart", "fork-per-epoch", "clean", 300'000'000},
    {"xfer-pageable", "blocking-to", "clean", 6'000'000},
    {"xfer-small", "many-tensors", "sparse", 3'000'000},
    {"sync", "item-per-layer", "skew", 3'000'000},
    {"launch", "tiny-kernels", "clean", 8'000'000},
    {"host", "logging", "sparse", 5'000'000},
    {"comm-straggler", "slow-host-on-one-rank", "clean", 5'000'000},
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string name_of(const Job& job) { return std::string(job.cause) + "." + job.mechanism; }

Files simulated(const Job& job) {
  simulate::Scenario scenario =
      simulate::single_scenario(job.cause, job.mechanism, 0.3, job.profile, 7);
  for (simulate::InjectedCause& cause : scenario.causes) cause.amount_ns = job.amount_ns;
  Files files = simulate::scenario_files(scenario).value();
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".istrace"); });
  return files;
}

fs::path real_folder() { return IDLESCOPE_GOLDEN_REAL; }

}  // namespace

std::vector<std::string> simulated_names() {
  std::vector<std::string> names;
  for (const Job& job : kJobs) names.push_back(name_of(job));
  return names;
}

std::vector<std::string> real_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(real_folder())) {
    if (entry.path().extension() == ".istrace") names.push_back(entry.path().filename());
  }
  for (const auto& entry : fs::directory_iterator(real_folder() / "scenarios")) {
    if (entry.is_directory()) names.push_back("scenarios/" + entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Files files_of(const std::string& name) {
  for (const Job& job : kJobs) {
    if (name_of(job) == name) return simulated(job);
  }
  Files files;
  const fs::path path = real_folder() / name;
  if (fs::is_regular_file(path)) return {{path.filename(), read_file(path)}};
  for (const auto& entry : fs::directory_iterator(path / "recording")) {
    files.emplace_back(entry.path().filename(), read_file(entry.path()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

Answer answer_to(const Files& files) {
  const fs::path folder =
      fs::temp_directory_path() / ("idlescope-properties-" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, content] : files) {
    std::ofstream(folder / name, std::ios::binary) << content;
  }
  Answer answer;
  read::Expected<read::Recording> recording = read::read_paths({folder.string()});
  if (recording) {
    const diagnose::Analysis analysis = diagnose::analyze(std::move(*recording));
    answer.report = report::build(analysis.diagnosis, analysis.model.recording);
    answer.read = true;
  } else {
    answer.fault = recording.error().text();
  }
  fs::remove_all(folder);
  return answer;
}

std::string test_name(const std::string& recording) {
  std::string name;
  for (const char c : recording) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
    if ((c == '-' || c == '.' || c == '_') && !name.empty() && name.back() != '_') name += '_';
  }
  return name;
}

}  // namespace idlescope::test
