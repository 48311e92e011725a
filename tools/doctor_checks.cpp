#include "tools/doctor_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "proto/messages.h"
#include "tools/say.h"
#include "tools/units.h"

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "580.159.03" in "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03 …".
std::string first_version(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t dot = word.find('.');
    if (dot == word.npos || dot == 0) continue;
    if (word.find_first_not_of("0123456789.") == word.npos) return word;
  }
  return "?";
}

// File systems where the recorder does not map its files (profiler/emit/file_placement.cpp
// has the reasons).
const char* slow_file_system(uint32_t type) {
  switch (type) {
    case 0x6969u:
      return "NFS";
    case 0x517Bu:
    case 0xFF534D42u:
    case 0xFE534D42u:
      return "SMB";
    case 0x0BD00BD0u:
      return "Lustre";
    case 0x47504653u:
      return "GPFS";
    case 0x00C36400u:
      return "Ceph";
    case 0x19830326u:
      return "BeeGFS";
    case 0x01021997u:
      return "9p";
    case 0x65735546u:
      return "FUSE";
    default:
      return nullptr;
  }
}

}  // namespace

Finding check_driver(const std::string& root) {
  const std::optional<std::string> version = read_file(root + "/proc/driver/nvidia/version");
  std::error_code error;
  const bool wsl_device = fs::exists(root + "/dev/dxg", error);
  if (!version && !wsl_device) {
    return {Health::kLimited, messages::kDoctorNoDriver, {}, messages::kDoctorNoDriverTodo};
  }
  int devices = 0;
  int usable = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(root + "/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("nvidia", 0) != 0 || name.size() == 6 ||
        name.find_first_not_of("0123456789", 6) != name.npos) {
      continue;
    }
    ++devices;
    if (access(entry.path().c_str(), R_OK | W_OK) == 0) ++usable;
  }
  const messages::Values values = {
      {"version", version ? first_version(*version) : "WSL"},
      {"devices", count_of(static_cast<uint64_t>(devices), "GPU", "GPUs")}};
  if (devices > 0 && usable == 0) {
    return {Health::kFails, messages::kDoctorDeviceClosed, values,
            messages::kDoctorDeviceClosedTodo};
  }
  if (devices == 0 && !wsl_device) {
    return {Health::kLimited, messages::kDoctorNoDevice, values, messages::kDoctorNoDeviceTodo};
  }
  return {Health::kWorks, messages::kDoctorDriver, values, std::nullopt};
}

std::optional<Finding> check_gpu_permission(const std::string& root, bool is_root) {
  const std::optional<std::string> parameters = read_file(root + "/proc/driver/nvidia/params");
  if (!parameters) return std::nullopt;
  if (parameters->find("RmProfilingAdminOnly: 1") == std::string::npos || is_root) {
    return Finding{Health::kWorks, messages::kDoctorPermission, {}, std::nullopt};
  }
  return Finding{
      Health::kLimited, messages::kDoctorNoPermission, {}, messages::kDoctorNoPermissionTodo};
}

std::optional<Finding> check_wsl(const std::string& root) {
  const std::optional<std::string> version = read_file(root + "/proc/version");
  if (!version || (version->find("icrosoft") == std::string::npos &&
                   version->find("WSL") == std::string::npos)) {
    return std::nullopt;
  }
  return Finding{Health::kLimited, messages::kDoctorWsl, {}, messages::kDoctorWslTodo};
}

Finding check_counters(const std::string& root) {
  std::string missing;
  const auto need = [&](const char* file, std::string_view what) {
    if (read_file(root + file).value_or("").empty()) {
      missing += (missing.empty() ? "" : ", ") + std::string(what);
    }
  };
  need("/proc/thread-self/schedstat", "schedstat (waiting for a CPU)");
  need("/proc/thread-self/io", "io (bytes read)");
  if (missing.empty()) return {Health::kWorks, messages::kDoctorCounters, {}, std::nullopt};
  return {Health::kLimited,
          messages::kDoctorNoCounters,
          {{"missing", missing}},
          messages::kDoctorNoCountersTodo};
}

Finding check_cores(const std::string& root) {
  cpu_set_t set;
  const int affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  std::string quota = words(messages::kSureNone);
  if (const auto limit = read_file(root + "/sys/fs/cgroup/cpu.max")) {
    double used_us = 0;
    double period_us = 0;
    if (std::sscanf(limit->c_str(), "%lf %lf", &used_us, &period_us) == 2 && period_us > 0) {
      quota = fmt::format("{:.1f}", used_us / period_us);
    }
  }
  return {affinity > 1 ? Health::kWorks : Health::kLimited,
          messages::kDoctorCores,
          {{"cores", std::to_string(affinity)}, {"quota", quota}},
          std::nullopt};
}

Finding check_file_system(const std::string& directory) {
  const auto failed = [&](int error) {
    return Finding{Health::kFails,
                   messages::kDoctorNotWritable,
                   {{"directory", directory}, {"reason", std::strerror(error)}},
                   messages::kDoctorNotWritableTodo};
  };
  std::string name = directory + "/.idlescope-doctor-XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) return failed(errno);
  unlink(name.c_str());
  struct statfs facts {};
  struct statvfs room {};
  const bool known = fstatfs(file, &facts) == 0 && fstatvfs(file, &room) == 0;
  const char* slow = known ? slow_file_system(static_cast<uint32_t>(facts.f_type)) : nullptr;
  const bool allocates = fallocate(file, 0, 0, 4096) == 0;
  const int error = errno;
  close(file);
  if (!allocates && (error == ENOSPC || error == EDQUOT)) return failed(error);
  const messages::Values values = {
      {"directory", directory},
      {"kind", slow == nullptr ? "this file system" : slow},
      {"free", format_size(static_cast<uint64_t>(room.f_bavail) * room.f_frsize)}};
  if (slow != nullptr || !allocates) {
    return {Health::kLimited, messages::kDoctorAppendOnly, values, messages::kDoctorAppendOnlyTodo};
  }
  return {Health::kWorks, messages::kDoctorFileSystem, values, std::nullopt};
}

std::optional<Finding> check_file_size_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return Finding{Health::kLimited,
                 messages::kDoctorFileSize,
                 {{"limit", format_size(limit.rlim_cur)}},
                 messages::kDoctorFileSizeTodo};
}

std::optional<Finding> check_foreign_preload(const char* ld_preload) {
  if (ld_preload == nullptr || *ld_preload == '\0') return std::nullopt;
  return Finding{Health::kWorks, messages::kDoctorPreload, {{"preload", ld_preload}}, std::nullopt};
}

std::optional<Finding> check_shared_memory(const std::string& root) {
  struct statvfs room {};
  if (statvfs((root + "/dev/shm").c_str(), &room) != 0) return std::nullopt;
  const uint64_t bytes = static_cast<uint64_t>(room.f_blocks) * room.f_frsize;
  // Docker's default; DataLoader workers hand batches over through it.
  if (bytes > uint64_t{64} << 20) return std::nullopt;
  return Finding{Health::kLimited,
                 messages::kDoctorSharedMemory,
                 {{"size", format_size(bytes)}},
                 messages::kDoctorSharedMemoryTodo};
}

}  // namespace idlescope::tools
