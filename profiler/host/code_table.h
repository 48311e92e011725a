// What is known of the code objects that a watched fetch ran: the name to report, whether it
// is the user's own, whether it only passes calls on.
//
// In: code objects. Out: entries that stay valid while the process lives; each holds a
// reference to its code, so that an address is never reused. GIL held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/host/python_api.h"

namespace idlescope::host {

struct CodeEntry {
  PyObject* code;  // null: free
  bool is_user;
  bool is_compose;   // calls a list of transforms
  bool is_plumbing;  // PyTorch's fetcher, nn.Module.__call__: never a stage
  uint32_t name_id;
  uint32_t generation;  // of the file that name_id belongs to
};

class CodeTable {
 public:
  // Null: the table is full (kCapacity different functions).
  CodeEntry* find_or_add(PyObject* code);
  // "file:line function" in this process's file.
  static uint32_t name_id(CodeEntry* entry);

 private:
  static constexpr size_t kCapacity = 1024;  // a power of two
  CodeEntry entries_[kCapacity];
  size_t count_;
};

}  // namespace idlescope::host
