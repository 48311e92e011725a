// Brings the tables of one process into the order that recording.h promises.
//
// In: ops, calls and host events in any order, with indices resolved. Out: the same, sorted;
// calls know their enclosing call, ops the outermost call with the same (window,
// correlation); windows without an end get one; the process's extent. Used by the native
// reader and by every importer.
#pragma once

#include <cstdint>

#include "analysis/read/recording.h"

namespace idlescope::read {

struct JoinCounts {
  uint64_t ops = 0;
  uint64_t joined = 0;
};

// Uses two threads when there are many records.
JoinCounts arrange(Process& process);

// Finds calls by (window, correlation); several calls with one key are a runtime call and
// what it called: the outermost is found. Valid while process.calls does not change.
class CallIndex {
 public:
  explicit CallIndex(const Process& process);
  uint32_t find(uint32_t window, uint32_t correlation) const;

 private:
  struct Keyed {
    uint32_t correlation;
    uint32_t call;
  };
  struct PerWindow {
    uint32_t first = 0;           // correlation of dense[0]
    std::vector<uint32_t> dense;  // calls, by correlation - first
    std::vector<Keyed> sorted;    // where correlations are too scattered for `dense`
  };
  std::vector<PerWindow> windows_;  // last one: calls of no window
  uint32_t slot(uint32_t window) const {
    const uint32_t last = static_cast<uint32_t>(windows_.size()) - 1;
    return window < last ? window : last;
  }
};

}  // namespace idlescope::read
