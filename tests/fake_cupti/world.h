// The state of the fake: one world, its clock, and the device that runs the application's work and
// fills activity records. Only for the files of this folder; tests include fake_cupti.h.
//
// Everything is guarded by `mutex`, which calls lock themselves: real CUPTI is thread-safe too.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_cupti/fake_cupti.h"

namespace fake_cupti {

struct PendingRecord {
  size_t offset;
  int64_t start_ns;
  int64_t end_ns;
};

struct Buffer {
  uint8_t* data = nullptr;
  size_t capacity = 0;
  size_t used = 0;
  std::vector<PendingRecord> pending;  // not yet complete
};

struct Error {
  CUptiResult result;
  int count;
};

struct World {
  uint32_t version = 130001;
  bool virtual_clock = true;
  int64_t clock_ns = 1'000'000'000;
  int64_t call_ns = 2000;
  std::map<std::string, Error> errors;
  std::map<std::string, uint64_t> calls;
  std::function<void(const std::string&)> watcher;
  std::string other_tool;

  bool attached = false;
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<int, uint32_t>> enabled;
  std::set<int> kinds;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc timestamp = nullptr;
  uint32_t correlation = 0;
  std::deque<Buffer> buffers;  // the last one is being filled
  std::map<uint64_t, int64_t> stream_free_ns;
  std::set<std::string> names;  // stable strings
  uint64_t dropped = 0;
  uint64_t kernels = 0;
  bool no_buffers = false;
};

extern std::recursive_mutex mutex;

// Made at first use: the library's constructors come before its static objects.
std::unique_ptr<World>& the_world();
#define world the_world()

int64_t clock_ns();
void spend(int64_t duration_ns);
// Counts the call; the scripted error, if there is one.
CUptiResult enter(const char* function);

// Writes the end of what has ended by now into its record.
void settle();
// Full buffers whose records are complete go back; `all`: partly filled ones too; `force`:
// also those with unfinished records.
void deliver_ready(bool all, bool force);
size_t record_bytes(const CUpti_Activity* record);

// Work on a stream, with its record if that kind is enabled.
void trace_kernel(const Op& op, uint32_t correlation, uint64_t node);
void trace_copy(const Op& op, uint32_t correlation);
void trace_memset(const Op& op, uint32_t correlation);
void trace_graph(const Op& op, uint32_t correlation);

}  // namespace fake_cupti
