#include "tools/control_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace idlescope::tools {

bool append_control(const std::string& directory, const Control& control) {
  std::string line = "stop\n";
  if (control.start) {
    line = control.at_step == 0 ? "start\n" : fmt::format("start {}\n", control.at_step);
  }
  const std::string path = directory + "/" + kControlFile;
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  return close(file) == 0 && written;
}

bool listens(int64_t pid) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path tasks = fmt::format("/proc/{}/task", pid);
  for (const fs::directory_entry& task : fs::directory_iterator(tasks, error)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == "idlescope") return true;
  }
  return false;
}

}  // namespace idlescope::tools
