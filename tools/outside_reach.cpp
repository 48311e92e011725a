#include "tools/outside_reach.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace idlescope::tools {
namespace {

enum class Place { kContainer, kContainerRemote, kImageFile, kScheduler, kRemote, kUser };

struct Starter {
  std::string_view program;
  Place place;
};

// Read as: the job of this program runs there. apptainer and singularity pass LD_PRELOAD
// into the container, where the path does not exist (apptainer issue 2537: an error line
// from ld.so at every command).
constexpr Starter kStarters[] = {
    {"docker", Place::kContainer},    {"podman", Place::kContainer},
    {"nerdctl", Place::kContainer},   {"kubectl", Place::kContainerRemote},
    {"apptainer", Place::kImageFile}, {"singularity", Place::kImageFile},
    {"enroot", Place::kImageFile},    {"srun", Place::kScheduler},
    {"ray", Place::kRemote},          {"ssh", Place::kRemote},
    {"sbatch", Place::kRemote},       {"sudo", Place::kUser},
    {"doas", Place::kUser},           {"su", Place::kUser},
    {"runuser", Place::kUser},
};

// Programs that run the rest of their command line in place: look behind them.
constexpr std::string_view kWrappers[] = {"env",     "nice",    "ionice", "time",
                                          "nohup",   "timeout", "stdbuf", "numactl",
                                          "taskset", "setsid",  "chrt",   "unbuffer"};

std::string base_name(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return std::string(slash == path.npos ? path : path.substr(slash + 1));
}

// The first word from which on the job itself is named.
size_t find_inner(const std::vector<std::string>& command, size_t from) {
  for (size_t i = from; i < command.size(); ++i) {
    const std::string name = base_name(command[i]);
    if (name.rfind("python", 0) == 0 || name == "torchrun" || name == "accelerate" ||
        name == "deepspeed" || name == "bash" || name == "sh" || name == "uv" ||
        (name.size() > 3 && name.compare(name.size() - 3, 3, ".py") == 0 && i > from)) {
      return i;
    }
  }
  return command.size();
}

const Starter* starter_of(const std::string& word) {
  const std::string name = base_name(word);
  for (const Starter& starter : kStarters) {
    if (starter.program == name) return &starter;
  }
  return nullptr;
}

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    const bool safe = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("@%_-+=:,./").find(c) != std::string_view::npos;
    });
    if (safe) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) {
      if (c == '\'') {
        out += "'\\''";
      } else {
        out += c;
      }
    }
    out += '\'';
  }
  return out;
}

std::optional<OutsideReach> find_outside_reach(const std::vector<std::string>& command,
                                               const std::string& program_directory) {
  // The starter is CMD itself, or stands behind wrappers and their options, numbers and
  // assignments. A later word of that name (a file called docker) is not one.
  size_t first = 0;
  while (first < command.size()) {
    const std::string name = base_name(command[first]);
    const bool wrapper =
        std::find(std::begin(kWrappers), std::end(kWrappers), name) != std::end(kWrappers);
    if (!wrapper) break;
    ++first;
    while (first < command.size() && starter_of(command[first]) == nullptr &&
           (command[first][0] == '-' || command[first].find('=') != std::string::npos ||
            (command[first][0] >= '0' && command[first][0] <= '9'))) {
      ++first;
    }
  }
  if (first >= command.size()) return std::nullopt;
  const Starter* starter = starter_of(command[first]);
  if (starter == nullptr) return std::nullopt;

  const size_t inner = find_inner(command, first + 1);
  // `srun apptainer exec …`: the innermost starter before the job decides.
  for (size_t i = first + 1; i < inner; ++i) {
    if (const Starter* next = starter_of(command[i])) starter = next;
  }

  OutsideReach out;
  out.program = starter->program;
  out.container = starter->place == Place::kContainer ||
                  starter->place == Place::kContainerRemote || starter->place == Place::kImageFile;
  out.keep_preload = starter->place == Place::kScheduler;
  std::vector<std::string> outer(command.begin(),
                                 command.begin() + static_cast<std::ptrdiff_t>(inner));
  std::vector<std::string> job(command.begin() + static_cast<std::ptrdiff_t>(inner), command.end());
  std::string record = "idlescope record --";
  // A container that is made now can be given the installation; one that runs already must have
  // it inside.
  const bool made_now =
      starter->place == Place::kContainer && !job.empty() &&
      std::adjacent_find(outer.begin(), outer.end(), [&](const auto& word, const auto& verb) {
        return base_name(word) == out.program && verb == "run";
      }) != outer.end();
  if (starter->place == Place::kImageFile || made_now) {
    // The image is not rebuilt: bind the installation into it.
    const std::filesystem::path prefix = std::filesystem::path(program_directory).parent_path();
    for (size_t i = first; i < outer.size(); ++i) {
      if (base_name(outer[i]) != out.program) continue;
      const bool verb = i + 1 < outer.size();
      const auto at = outer.begin() + static_cast<std::ptrdiff_t>(verb ? i + 2 : i + 1);
      const std::vector<std::string> bind = {made_now                  ? "-v"
                                             : out.program == "enroot" ? "-m"
                                                                       : "-B",
                                             prefix.string() + ":/opt/idlescope"};
      outer.insert(at, bind.begin(), bind.end());
      break;
    }
    record = "/opt/idlescope/bin/idlescope record --";
  }
  if (job.empty()) {
    out.better = std::string(starter->program) + " … " + record + " python train.py";
  } else {
    out.better = shell_line(outer) + " " + record + " " + shell_line(job);
  }
  return out;
}

}  // namespace idlescope::tools
