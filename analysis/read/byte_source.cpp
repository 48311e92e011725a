#include "analysis/read/byte_source.h"
#include "proto/messages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace idlescope::read {
namespace {

// A file untouched for this long is not being recorded any more.
constexpr time_t kQuietSeconds = 60;

tl::unexpected<Fault> missing(const std::string& path, int error) {
  return tl::unexpected(
      Fault{messages::kFileMissing, {{"path", path}, {"reason", std::strerror(error)}}});
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

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
  const Descriptor file(path == "-" ? STDIN_FILENO
                                    : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return missing(path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return missing(path, errno);
  if (S_ISDIR(info.st_mode)) return missing(path, EISDIR);

  ByteSource source;
  const bool regular = S_ISREG(info.st_mode);
  const size_t size = regular ? static_cast<size_t>(info.st_size) : 0;
  const bool quiet = regular && info.st_mtime + kQuietSeconds < std::time(nullptr);
  if (quiet && size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapping != MAP_FAILED) {
      ::madvise(mapping, size, MADV_SEQUENTIAL);
      source.mapping_ = mapping;
      source.mapping_bytes_ = size;
      return source;
    }
  }
  if (regular && size == 0) {
    return tl::unexpected(Fault{messages::kFileEmpty, {{"path", path}}});
  }
  if (const int error = read_all(file.get(), size, source.copy_); error != 0) {
    return missing(path, error);
  }
  if (source.copy_.empty()) return tl::unexpected(Fault{messages::kFileEmpty, {{"path", path}}});
  return source;
}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      copy_(std::move(other.copy_)) {}

ByteSource& ByteSource::operator=(ByteSource&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(copy_, other.copy_);
  return *this;
}

ByteSource::~ByteSource() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
}

std::string_view ByteSource::bytes() const {
  if (mapping_ != nullptr) return {static_cast<const char*>(mapping_), mapping_bytes_};
  return copy_;
}

}  // namespace idlescope::read
