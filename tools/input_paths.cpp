#include "tools/input_paths.h"

#include <filesystem>

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

}  // namespace idlescope::tools
