#include "profiler/session/control_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace idlescope::session {
namespace {

// stat and fstat are symbols of glibc 2.33 and newer. On 64-bit systems the kernel's struct is
// glibc's.
bool file_facts(int directory, const char* path, int flags, struct stat* out) {
  return syscall(SYS_newfstatat, directory, path, out, flags) == 0;
}

}  // namespace

bool parse_control_line(const char* line, size_t size, ControlCommand* out) {
  while (size > 0 && (line[size - 1] == '\r' || line[size - 1] == ' ')) --size;
  *out = {};
  if (size == 4 && memcmp(line, "stop", 4) == 0) return true;
  if (size < 5 || memcmp(line, "start", 5) != 0) return false;
  out->start = true;
  if (size == 5) return true;
  if (line[5] != ' ' || size == 6 || size > 6 + 18) return false;
  for (size_t i = 6; i < size; ++i) {
    if (line[i] < '0' || line[i] > '9') return false;
    out->at_step = out->at_step * 10 + static_cast<uint64_t>(line[i] - '0');
  }
  return true;
}

ControlFile::ControlFile(const char* directory) {
  snprintf(path_, sizeof path_, "%.4096s/%s", directory, kControlFileName);
}

// Takes over what was appended; true if there is any.
bool ControlFile::read_more() {
  struct stat facts;
  if (!file_facts(AT_FDCWD, path_, 0, &facts)) {
    looked_ = true;  // what comes from now on is all new
    offset_ = 0;
    return false;
  }
  if (facts.st_size == offset_) return false;
  if (facts.st_size < offset_) offset_ = 0;  // somebody began anew
  const int file = open(path_, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  text_size_ = 0;
  text_at_ = 0;
  if (file_facts(file, "", AT_EMPTY_PATH, &facts) && S_ISREG(facts.st_mode) &&
      (facts.st_uid == geteuid() || facts.st_uid == 0)) {
    // Of a file that has grown beyond sense only the end counts.
    const auto room = static_cast<int64_t>(sizeof text_);
    const bool too_much = facts.st_size - offset_ > room;
    if (too_much) offset_ = facts.st_size - room;
    const ssize_t got = pread(file, text_, sizeof text_, offset_);
    if (got > 0) text_size_ = static_cast<size_t>(got);
    if (too_much) {  // the first line there is cut
      const void* end = memchr(text_, '\n', text_size_);
      text_at_ = end == nullptr ? text_size_
                                : static_cast<size_t>(static_cast<const char*>(end) - text_) + 1;
    }
  }
  close(file);
  // A line without its end is read again when it is whole.
  while (text_size_ > text_at_ && text_[text_size_ - 1] != '\n') --text_size_;
  offset_ += static_cast<int64_t>(text_size_);
  return text_size_ > text_at_;
}

bool ControlFile::next_line(ControlCommand* out) {
  while (text_at_ < text_size_) {
    const char* line = text_ + text_at_;
    const void* end = memchr(line, '\n', text_size_ - text_at_);
    if (end == nullptr) break;
    const auto size = static_cast<size_t>(static_cast<const char*>(end) - line);
    text_at_ += size + 1;
    ControlCommand command;
    if (parse_control_line(line, size, &command)) {
      *out = command;
      return true;
    }
  }
  return false;
}

}  // namespace idlescope::session
