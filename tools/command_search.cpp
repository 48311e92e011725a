#include "tools/command_search.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace idlescope::tools {
namespace {

int file_error(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return errno == ENOTDIR ? ENOENT : errno;
  if (S_ISDIR(status.st_mode)) return EACCES;
  return access(file.c_str(), X_OK) == 0 ? 0 : EACCES;
}

}  // namespace

int command_error(const std::string& name, const char* path) {
  if (name.empty()) return ENOENT;
  if (name.find('/') != name.npos) return file_error(name);
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  int worst = ENOENT;
  while (true) {
    const size_t colon = rest.find(':');
    const std::string directory(rest.substr(0, colon));
    const int error = file_error((directory.empty() ? "." : directory) + "/" + name);
    if (error == 0) return 0;
    if (error == EACCES) worst = EACCES;  // a later directory may still have one that runs
    if (colon == rest.npos) return worst;
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace idlescope::tools
