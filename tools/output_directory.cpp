#include "tools/output_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "tools/control_file.h"
#include "tools/run_file.h"

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string base_name(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return std::string(slash == path.npos ? path : path.substr(slash + 1));
}

// Only letters, digits, '.', '_' and '-': the name is typed again and pasted into shells.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
    out += keep ? c : '_';
  }
  return out.empty() ? "job" : out;
}

// Files that we wrote; everything else in a directory is somebody's.
bool is_recording_file(std::string_view name) {
  return ends_with(name, ".istrace") || ends_with(name, ".istrace.compacting") ||
         ends_with(name, ".usage") || is_run_file_name(name) || name == "report.html" ||
         name == kControlFile;
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  return name;
}

}  // namespace

std::string script_name(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (i > 0 && word.size() > 0 && word[0] == '-' && word != "-m") continue;
    for (const std::string_view suffix : {".py", ".sh"}) {
      if (!ends_with(word, suffix)) continue;
      std::string name = base_name(word);
      name.resize(name.size() - suffix.size());
      return plain(name);
    }
    // `python -m pkg.train`; launchers run as modules (-m torch.distributed.run) come
    // before their own script, which the loop above finds first.
    if (word == "-m" && i + 1 < command.size()) {
      const std::string& module = command[i + 1];
      bool script_follows = false;
      for (size_t k = i + 2; k < command.size(); ++k)
        script_follows |= ends_with(command[k], ".py");
      if (script_follows) continue;
      const size_t dot = module.find_last_of('.');
      return plain(dot == module.npos ? module : module.substr(dot + 1));
    }
  }
  return plain(command.empty() ? "" : base_name(command[0]));
}

std::string default_directory_name(const std::vector<std::string>& command,
                                   const JobIdentity& identity, const std::tm& time) {
  const std::string script = script_name(command);
  if (!identity.job_id.empty())
    return fmt::format("idlescope-{}-{}", script, plain(identity.job_id));
  return fmt::format("idlescope-{}-{:02}{:02}-{:02}{:02}{:02}", script, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}

tl::expected<std::string, std::string> expand_pattern(const std::string& pattern,
                                                      const JobIdentity& identity,
                                                      const Environment& environment) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    const char kind = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    ++i;
    switch (kind) {
      case '%':
        out += '%';
        break;
      case 'h':
        out += host_name();
        break;
      case 'p':
        out += std::to_string(getpid());
        break;
      case 'r':
        out += std::to_string(identity.rank.value_or(0));
        break;
      case 'q': {
        const size_t close = pattern.find('}', i);
        if (i + 1 >= pattern.size() || pattern[i + 1] != '{' || close == pattern.npos) {
          return tl::unexpected(fmt::format("-o {}: expected %q{{VARIABLE}}", pattern));
        }
        const std::string name = pattern.substr(i + 2, close - i - 2);
        const char* value = environment(name.c_str());
        if (value == nullptr) {
          return tl::unexpected(fmt::format("-o {}: the variable {} is not set", pattern, name));
        }
        out += value;
        i = close;
        break;
      }
      default:
        return tl::unexpected(
            fmt::format("-o {}: %h, %p, %r, %q{{VARIABLE}} and %% are known, %{} is not", pattern,
                        kind == '\0' ? "" : std::string(1, kind)));
    }
  }
  return out;
}

bool remove_recording(const std::string& directory) {
  std::error_code error;
  bool all = true;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (!is_recording_file(entry.path().filename().string())) continue;
    std::error_code removed;
    fs::remove(entry.path(), removed);
    all = all && !removed;
  }
  return all && !error;
}

tl::expected<OutputDirectory, OutputFailure> make_output_directory(const std::string& path,
                                                                   bool force,
                                                                   const JobIdentity& identity) {
  const auto failed = [](const std::string& reason) {
    return tl::unexpected(OutputFailure{OutputError::kFailed, reason});
  };
  OutputDirectory out;
  out.shown = path;
  while (out.shown.size() > 1 && out.shown.back() == '/') out.shown.pop_back();
  std::error_code error;
  out.path = fs::absolute(out.shown, error).lexically_normal().string();
  if (error) return failed(error.message());
  out.created = fs::create_directories(out.path, error);
  if (error) return failed(error.message());
  if (access(out.path.c_str(), W_OK | X_OK) != 0) {
    return failed(std::error_code(errno, std::generic_category()).message());
  }
  if (out.created) return out;

  bool empty = true;
  for (const fs::directory_entry& entry : fs::directory_iterator(out.path, error)) {
    (void)entry;
    empty = false;
    break;
  }
  if (error) return failed(error.message());
  if (empty) return out;
  // Another rank of this job was here first. -f means the recording of an earlier job, never
  // the one that a sibling is writing.
  if (identity.rank && is_run_of_job(out.path, identity.job_id)) return out;
  if (!force) return tl::unexpected(OutputFailure{OutputError::kExists, ""});
  if (!remove_recording(out.path)) return failed("an earlier recording could not be removed");
  return out;
}

}  // namespace idlescope::tools
