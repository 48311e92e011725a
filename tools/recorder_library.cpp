#include "tools/recorder_library.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

// Loads the library in a child, disabled; empty if that worked, else the loader's words.
std::string load_error(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return {};  // the check is a courtesy: no descriptor, no check
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return {};
  }
  if (child == 0) {
    close(ends[0]);
    setenv("IDLESCOPE_DISABLE", "1", 1);
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      const char* why = dlerror();
      if (why == nullptr) why = "dlopen failed";
      const ssize_t written = write(ends[1], why, std::strlen(why));
      (void)written;
    }
    _exit(0);
  }
  close(ends[1]);
  std::string why;
  char buffer[512];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    why.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (why.empty() && WIFSIGNALED(status))
    why = "loading it ends in " + std::string(strsignal(WTERMSIG(status)));
  return why;
}

}  // namespace

std::string program_directory() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : program.parent_path().string();
}

std::vector<std::string> library_candidates(const std::string& directory,
                                            const char* idlescope_library) {
  if (idlescope_library != nullptr && *idlescope_library != '\0') return {idlescope_library};
  constexpr const char* kName = "libidlescope.so";
  const fs::path here(directory);
  std::vector<std::string> out;
  for (const fs::path& folder :
       {here, here / "../lib", here / "../lib64", here / "../lib/idlescope"}) {
    out.push_back((folder / kName).lexically_normal().string());
  }
#ifdef __x86_64__
  out.push_back((here / "../lib/x86_64-linux-gnu" / kName).lexically_normal().string());
#elif defined(__aarch64__)
  out.push_back((here / "../lib/aarch64-linux-gnu" / kName).lexically_normal().string());
#endif
  return out;
}

tl::expected<std::string, LibraryFailure> find_recorder_library() {
  LibraryFailure failure;
  for (const std::string& path :
       library_candidates(program_directory(), std::getenv("IDLESCOPE_LIBRARY"))) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error);
    if (!failure.looked_at.empty()) failure.looked_at += ", ";
    failure.looked_at += path;
    if (error || !fs::is_regular_file(absolute, error)) continue;
    const std::string found = absolute.lexically_normal().string();
    // ld.so(8): the elements of LD_PRELOAD are separated by spaces or colons, and there is
    // no way to quote one.
    if (found.find_first_of(" :\t\n") != found.npos) {
      failure.reason = found + ": the dynamic loader cannot preload a path with a space or colon";
      return tl::unexpected(failure);
    }
    failure.reason = load_error(found);
    if (!failure.reason.empty()) return tl::unexpected(failure);
    return found;
  }
  return tl::unexpected(failure);
}

}  // namespace idlescope::tools
