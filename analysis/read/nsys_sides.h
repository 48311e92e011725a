// The operating-system processes of an Nsight Systems export, and its texts.
//
// In: global ids and string ids of rows. Out: one ImportBuilder per process, the text of an id.
// Every part of the importer (nsys_*.cpp) fills the same sides.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analysis/read/import_builder.h"
#include "analysis/read/import_marks.h"
#include "analysis/read/sqlite_file.h"

namespace idlescope::read {

// Global ids: 8 bits hardware, 8 bits virtual machine, 24 bits pid, 24 bits tid (Nsight
// Systems documentation, "Export to SQLite", common fields).
uint64_t nsys_process_of(int64_t global_tid);
uint32_t nsys_pid_of(uint64_t global_pid);
uint32_t nsys_thread_of(int64_t global_tid);

class NsysSides {
 public:
  NsysSides(SqliteFile& file, const std::string& path, Recording& recording)
      : file_(file), path_(path), recording_(recording) {}

  // What one operating-system process did.
  struct Side {
    Side(Recording& recording, const std::string& path)
        : builder(recording, path), marks(builder) {}
    ImportBuilder builder;
    ImportMarks marks;
    std::set<uint32_t> node_correlations;  // of kernels recorded inside graph launches
    uint64_t bad_numbers = 0;              // rows whose times are no numbers
    uint64_t nameless_calls = 0;
  };

  Side& side(uint64_t global_pid);        // made on first use
  Side* find(uint64_t global_pid) const;  // nullptr: it neither called CUDA nor used the GPU
  std::map<uint64_t, std::unique_ptr<Side>>& all() { return sides_; }

  void read_strings();
  std::string_view text(int64_t id) const;  // empty: unknown

  // Times of a row; false, and counted, where they are absent or no numbers.
  static bool times(const SqliteRow& row, size_t begin, size_t end, Side& side, Ns& begin_ns,
                    Ns& end_ns);

  SqliteFile& file() { return file_; }
  const std::string& path() const { return path_; }
  Recording& recording() { return recording_; }

 private:
  SqliteFile& file_;
  const std::string& path_;
  Recording& recording_;
  std::unordered_map<int64_t, std::string> strings_;
  std::map<uint64_t, std::unique_ptr<Side>> sides_;
};

}  // namespace idlescope::read
