#include "tools/input_paths.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace idlescope::tools {

namespace fs = std::filesystem;

std::optional<std::string> newest_recording(const std::string& directory) {
  std::optional<std::string> newest;
  fs::file_time_type newest_time{};
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name.rfind("idlescope-", 0) != 0 || !entry.is_directory(ignored)) continue;
    const fs::file_time_type time = entry.last_write_time(ignored);
    // Equal times: names end in the time of day.
    if (!newest || time > newest_time || (time == newest_time && name > *newest)) {
      newest = name;
      newest_time = time;
    }
  }
  return newest;
}

read::Expected<std::string> seekable_path(const std::string& path) {
  const bool standard_input = path == "-";
  struct stat facts {};
  if (!standard_input && (stat(path.c_str(), &facts) != 0 || !S_ISFIFO(facts.st_mode))) return path;
  const auto failed = [&](int error) {
    return tl::unexpected(read::Fault{
        messages::kFileMissing,
        {{"path", standard_input ? "standard input" : path}, {"reason", std::strerror(error)}}});
  };
  const int in = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return failed(errno);
  const int out = memfd_create("idlescope-input", MFD_CLOEXEC);
  if (out < 0) return failed(errno);
  std::vector<char> block(size_t{1} << 20);
  for (;;) {
    const ssize_t count = ::read(in, block.data(), block.size());
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || write(out, block.data(), static_cast<size_t>(count)) != count) {
      return failed(errno);
    }
  }
  if (!standard_input) close(in);
  return "/proc/self/fd/" + std::to_string(out);
}

}  // namespace idlescope::tools
