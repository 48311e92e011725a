// Writes committed records by pwrite, for file systems where a mapping is refused or can stall.
//
// One descriptor is kept open, high up: opening and closing per record would make NFS flush each
// time. A job that closes all its descriptors may get the number for a file of its own, so it is
// compared with our file before each write; where it is not ours any more the file is opened
// by path. Any thread; no allocation; answers are errno values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/file_placement.h"

namespace idlescope::emit {

struct AppendSink {
  int descriptor;  // −1: none

  // Keeps a duplicate of `of`. 0 or an errno. Nothing to do where one is kept already.
  int keep(int of);
  // In a forked child: lets go of the parent's.
  void forget_inherited(const FileIdentity& parents_file);
  int write(const char* path, const FileIdentity& file, const void* bytes, size_t size,
            uint64_t offset) const;
};

}  // namespace idlescope::emit
