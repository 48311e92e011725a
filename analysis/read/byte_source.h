// The bytes of a file: its beginning, all of it in memory, or one piece after another.
//
// In: a path, or "-" for standard input. Out: the bytes as they were when the file was opened.
// In memory they are mapped where that is safe: a file that may still be written to (a live
// recording) is copied, because a mapping of a file that shrinks kills the reader with SIGBUS.
// In pieces nothing is mapped, and memory does not grow with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::read {

class ByteSource {
 public:
  // Fault file-missing when it cannot be opened or read, file-empty for 0 bytes.
  static Expected<ByteSource> open(const std::string& path);

  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&& other) = delete;
  ~ByteSource();

  uint64_t size() const { return size_; }
  std::string_view head() const { return head_; }  // up to 64 KiB
  // All bytes, valid as long as this; fault file-missing when they cannot be read.
  Expected<std::string_view> bytes();
  // Pieces in order: fills up to `size` bytes, returns how many, 0 at the end or on an error.
  // Valid as long as this.
  std::function<size_t(char* out, size_t size)> pieces();

 private:
  ByteSource() = default;

  std::string path_;
  int file_ = -1;  // of a regular file
  bool quiet_ = false;
  uint64_t size_ = 0;
  std::string head_;
  void* mapping_ = nullptr;
  std::string copy_;
};

}  // namespace idlescope::read
