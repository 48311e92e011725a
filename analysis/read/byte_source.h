// The bytes of a file in memory, mapped where that is safe.
//
// In: a path, or "-" for standard input. Out: a view of all bytes as they were when the file
// was opened. A file that may still be written to (a live recording) is copied, because a
// mapping of a file that shrinks kills the reader with SIGBUS.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::read {

class ByteSource {
 public:
  // Fault file-missing when it cannot be opened or read, file-empty for 0 bytes.
  static Expected<ByteSource> open(const std::string& path);

  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&& other) noexcept;
  ~ByteSource();

  std::string_view bytes() const;

 private:
  ByteSource() = default;

  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::string copy_;
};

}  // namespace idlescope::read
