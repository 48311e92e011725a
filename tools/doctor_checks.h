// What a recording needs of this machine, one question a function.
//
// In: a root folder to look under ("" on a real machine, a made-up tree in tests). Out:
// findings: works, works in part, does not, each with what to do about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/fill.h"
#include "proto/message.h"

namespace idlescope::tools {

enum class Health { kWorks, kLimited, kFails };

struct Finding {
  Health health = Health::kWorks;
  messages::Message what;
  messages::Values values;
  std::optional<messages::Message> todo;
};

Finding check_driver(const std::string& root);
// Nothing where there is no driver to ask.
std::optional<Finding> check_gpu_permission(const std::string& root, bool is_root);
std::optional<Finding> check_wsl(const std::string& root);
Finding check_counters(const std::string& root);
Finding check_cores(const std::string& root);
Finding check_file_system(const std::string& directory);
std::optional<Finding> check_file_size_limit();
std::optional<Finding> check_foreign_preload(const char* ld_preload);
std::optional<Finding> check_shared_memory(const std::string& root);

}  // namespace idlescope::tools
