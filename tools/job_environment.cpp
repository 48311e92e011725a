#include "tools/job_environment.h"

#include <string_view>

namespace idlescope::tools {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD";

bool lists(std::string_view preload, std::string_view library) {
  while (!preload.empty()) {
    const size_t end = preload.find_first_of(": ");
    if (preload.substr(0, end) == library) return true;
    if (end == preload.npos) break;
    preload.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::vector<std::string> job_environment(const char* const* environ, const Settings& settings,
                                         const std::string& library) {
  std::vector<std::string> out;
  std::string preload = library;
  for (const char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (settings.count(std::string(name)) != 0) continue;
    if (name == kPreload && !library.empty()) {
      const std::string_view theirs = text.substr(kPreload.size() + 1);
      if (lists(theirs, library)) {
        preload = theirs;
      } else if (!theirs.empty()) {
        preload += ':';
        preload += theirs;
      }
      continue;
    }
    out.emplace_back(text);
  }
  for (const auto& [name, value] : settings) out.push_back(name + "=" + value);
  if (!library.empty()) out.push_back(std::string(kPreload) + "=" + preload);
  return out;
}

}  // namespace idlescope::tools
