#include "analysis/read/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "proto/messages.h"

namespace idlescope::read {
namespace {

// A file untouched for this long is not being recorded any more.
constexpr time_t kQuietSeconds = 60;
constexpr size_t kHeadBytes = size_t{64} << 10;

tl::unexpected<Fault> missing(const std::string& path, int error) {
  return tl::unexpected(
      Fault{messages::kFileMissing, {{"path", path}, {"reason", std::strerror(error)}}});
}

// As pread; never interrupted.
ssize_t read_at(int fd, char* out, size_t size, uint64_t at) {
  ssize_t got = 0;
  do {
    got = ::pread(fd, out, size, static_cast<off_t>(at));
  } while (got < 0 && errno == EINTR);
  return got;
}

// Errno, or 0. Reads to the end of the file.
int read_all(int fd, size_t expected_bytes, std::string& out) {
  out.resize(expected_bytes > 0 ? expected_bytes : size_t{1} << 16);
  size_t used = 0;
  while (true) {
    if (used == out.size()) {
      if (expected_bytes > 0) break;  // as it was when opened; a live file may be longer now
      out.resize(out.size() * 2);
    }
    const ssize_t n = ::read(fd, out.data() + used, out.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    used += static_cast<size_t>(n);
  }
  out.resize(used);
  return 0;
}

}  // namespace

Expected<ByteSource> ByteSource::open(const std::string& path) {
  const bool standard_input = path == "-";
  const int file =
      standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return missing(path, errno);
  ByteSource source;
  source.path_ = path;
  source.file_ = standard_input ? ::dup(file) : file;
  struct stat info {};
  if (::fstat(source.file_, &info) != 0) return missing(path, errno);
  if (S_ISDIR(info.st_mode)) return missing(path, EISDIR);
  // A device may have no end (/dev/zero); of a terminal, the user types it.
  if (!standard_input && !S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode)) {
    return missing(path, EINVAL);
  }
  if (!S_ISREG(info.st_mode)) {
    if (const int error = read_all(source.file_, 0, source.copy_); error != 0) {
      return missing(path, error);
    }
    source.size_ = source.copy_.size();
    source.head_ = source.copy_.substr(0, kHeadBytes);
  } else {
    source.size_ = static_cast<uint64_t>(info.st_size);
    source.quiet_ = info.st_mtime + kQuietSeconds < std::time(nullptr);
    source.head_.resize(std::min<uint64_t>(source.size_, kHeadBytes));
    const ssize_t got = read_at(source.file_, source.head_.data(), source.head_.size(), 0);
    if (got < 0) return missing(path, errno);
    source.head_.resize(static_cast<size_t>(got));
  }
  if (source.head_.empty()) return tl::unexpected(Fault{messages::kFileEmpty, {{"path", path}}});
  return source;
}

Expected<std::string_view> ByteSource::bytes() {
  if (mapping_ == nullptr && copy_.empty()) {
    const size_t size = static_cast<size_t>(size_);
    if (quiet_) {
      void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_, 0);
      if (mapping != MAP_FAILED) {
        ::madvise(mapping, size, MADV_SEQUENTIAL);
        mapping_ = mapping;
      }
    }
    if (mapping_ == nullptr) {
      if (::lseek(file_, 0, SEEK_SET) < 0) return missing(path_, errno);
      if (const int error = read_all(file_, size, copy_); error != 0) return missing(path_, error);
    }
  }
  if (mapping_ == nullptr) return std::string_view(copy_);
  return std::string_view(static_cast<const char*>(mapping_), static_cast<size_t>(size_));
}

std::function<size_t(char*, size_t)> ByteSource::pieces() {
  return [this, at = uint64_t{0}](char* out, size_t size) mutable -> size_t {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size, size_ - at));
    if (!copy_.empty()) {
      std::memcpy(out, copy_.data() + at, wanted);
      at += wanted;
      return wanted;
    }
    const ssize_t got = read_at(file_, out, wanted, at);
    if (got <= 0) return 0;
    at += static_cast<uint64_t>(got);
    return static_cast<size_t>(got);
  };
}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      quiet_(other.quiet_),
      size_(other.size_),
      head_(std::move(other.head_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      copy_(std::move(other.copy_)) {}

ByteSource::~ByteSource() {
  if (mapping_ != nullptr) ::munmap(mapping_, static_cast<size_t>(size_));
  if (file_ >= 0) ::close(file_);
}

}  // namespace idlescope::read
