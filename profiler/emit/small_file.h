// Reads a small file of /proc or /sys into the caller's memory. Any thread, no allocation.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

namespace idlescope::emit {

// Bytes read; the text is always terminated. 0: missing, unreadable or empty.
inline size_t read_small_file(const char* path, char* out, size_t capacity) {
  out[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t size = 0;
  while (size + 1 < capacity) {
    const ssize_t got = read(fd, out + size, capacity - 1 - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  close(fd);
  out[size] = '\0';
  return size;
}

}  // namespace idlescope::emit
