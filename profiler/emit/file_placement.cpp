#include "profiler/emit/file_placement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "profiler/emit/process_identity.h"

namespace idlescope::emit {
namespace {

constexpr int kMaxImages = 10'000;  // programs that one pid ran one after another (exec)
constexpr size_t kUsageBytes = 4096;

bool identify(int descriptor, FileIdentity* identity) {
  struct stat facts {};
  // The system call: glibc's fstat got a new symbol in 2.33.
  if (syscall(SYS_fstat, descriptor, &facts) != 0) return false;
  *identity = {static_cast<uint64_t>(facts.st_dev), static_cast<uint64_t>(facts.st_ino)};
  return true;
}

// mkdir -p. The directory is the user's: mode by umask.
void make_directories(const char* directory) {
  char path[kMaxPathBytes];
  const size_t length = strnlen(directory, sizeof path);
  if (length == 0 || length == sizeof path) return;
  memcpy(path, directory, length + 1);
  for (size_t i = 1; i <= length; ++i) {
    if (path[i] != '/' && path[i] != '\0') continue;
    const char kept = path[i];
    path[i] = '\0';
    mkdir(path, 0777);  // EEXIST and refusals show at the open that follows
    path[i] = kept;
  }
}

// DIR/HOST.usage, shared by the host's processes and the launcher (tools/compact.cpp gives
// back what compaction frees).
struct UsagePage {
  std::atomic<uint64_t> used_bytes;
  std::atomic<uint64_t> stopped;
};

// Room for the whole page. Where fallocate is not known (FUSE, NFS 3, ramfs), zeros behind the
// counters make it: they touch no count of another process, and no byte is left unwritten in
// the counters' block, whose first store would need room then (SIGBUS).
bool reserve_usage(int descriptor) {
  const int error = allocate_range(descriptor, 0, kUsageBytes);
  if (error != EOPNOTSUPP && error != ENOSYS) return error == 0;
  static const uint8_t kZeros[kUsageBytes - sizeof(UsagePage)] = {};
  return write_all_at(descriptor, kZeros, sizeof kZeros, sizeof(UsagePage)) == 0;
}

UsagePage* map_usage(const char* directory, const char* host) {
  char path[kMaxPathBytes];
  const int length = snprintf(path, sizeof path, "%s/%s.usage", directory, host);
  if (length < 0 || length >= static_cast<int>(sizeof path)) return nullptr;
  if (!within_file_size_limit(kUsageBytes)) return nullptr;
  const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (reserve_usage(descriptor)) {
    memory = mmap(nullptr, kUsageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  close(descriptor);
  return memory == MAP_FAILED ? nullptr : static_cast<UsagePage*>(memory);
}

}  // namespace

int make_trace_file(const char* directory, const char* host, char* path, FileIdentity* identity) {
  const long pid = getpid();
  const unsigned long long start = process_start_ticks();
  bool made_directory = false;
  for (int image = 0; image < kMaxImages;) {
    const int length = snprintf(path, kMaxPathBytes, "%s/%s.%ld.%llu.%d.istrace", directory, host,
                                pid, start, image);
    if (length < 0 || length >= static_cast<int>(kMaxPathBytes)) return -ENAMETOOLONG;
    const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor >= 0) {
      if (identify(descriptor, identity)) return descriptor;
      const int error = errno;
      close(descriptor);
      return -error;
    }
    if (errno == EEXIST) {
      ++image;
    } else if (errno == ENOENT && !made_directory) {
      made_directory = true;
      make_directories(directory);
    } else if (errno != EINTR) {
      return -errno;
    }
  }
  return -EEXIST;
}

bool is_same_file(int descriptor, const FileIdentity& identity) {
  FileIdentity found{};
  return identify(descriptor, &found) && found.device == identity.device &&
         found.inode == identity.inode;
}

int open_same_file(const char* path, const FileIdentity& identity) {
  int descriptor = -1;
  do {
    descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return -errno;
  if (is_same_file(descriptor, identity)) return descriptor;
  close(descriptor);
  return -ESTALE;
}

bool needs_append_sink(int descriptor) {
  struct statfs facts {};
  if (fstatfs(descriptor, &facts) != 0) return true;
  switch (static_cast<uint32_t>(facts.f_type)) {
    case 0x6969u:      // NFS
    case 0x517Bu:      // SMB
    case 0xFF534D42u:  // CIFS
    case 0xFE534D42u:  // SMB2
    case 0x0BD00BD0u:  // Lustre
    case 0x47504653u:  // GPFS
    case 0x00C36400u:  // Ceph
    case 0x19830326u:  // BeeGFS
    case 0x01021997u:  // 9p
    case 0x65735546u:  // FUSE
      return true;
    default:
      return false;
  }
}

bool within_file_size_limit(uint64_t end_bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return true;
  return limit.rlim_cur == RLIM_INFINITY || end_bytes <= limit.rlim_cur;
}

Booking book_bytes(const char* directory, const char* host, uint64_t limit_bytes,
                   uint64_t own_bytes, uint64_t bytes) {
  if (limit_bytes == 0) return Booking::kGranted;
  UsagePage* usage = map_usage(directory, host);
  if (usage == nullptr) {
    return own_bytes + bytes <= limit_bytes ? Booking::kGranted : Booking::kLimitReached;
  }
  Booking answer = Booking::kGranted;
  if (usage->stopped.load(std::memory_order_relaxed) != 0) {
    answer = Booking::kStopped;
  } else if (usage->used_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_bytes) {
    usage->used_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    answer = Booking::kLimitReached;
  }
  munmap(static_cast<void*>(usage), kUsageBytes);
  return answer;
}

void end_job_recording(const char* directory, const char* host) {
  UsagePage* usage = map_usage(directory, host);
  if (usage == nullptr) return;
  usage->stopped.store(1, std::memory_order_relaxed);
  munmap(static_cast<void*>(usage), kUsageBytes);
}

int allocate_range(int descriptor, uint64_t offset, uint64_t bytes) {
  while (fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int write_all_at(int descriptor, const void* bytes, size_t size, uint64_t offset) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  while (size != 0) {
    const ssize_t wrote = pwrite(descriptor, at, size, static_cast<off_t>(offset));
    if (wrote > 0) {
      at += wrote;
      size -= static_cast<size_t>(wrote);
      offset += static_cast<uint64_t>(wrote);
    } else if (wrote == 0) {
      return ENOSPC;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace idlescope::emit
