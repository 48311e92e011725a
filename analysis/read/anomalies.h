// Collects the oddities of an input while it is read: one entry per message and values,
// with a count.
//
// In: readers and importers report as they go, from one thread each. Out: entries for
// Recording::anomalies. Nothing odd is silent, and ten thousand equal oddities are one line.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::read {

class Anomalies {
 public:
  // `affects_conclusions`: a verdict drawn from this input may be wrong because of it.
  void add(const messages::Message& message, messages::Values values, uint64_t count = 1,
           bool affects_conclusions = false);

  // Same, if count is not 0; {count} and {path} are filled in.
  void add_counted(const messages::Message& message, const std::string& path, uint64_t count,
                   bool affects_conclusions = false);

  void move_into(std::vector<Anomaly>& out);
  const std::vector<Anomaly>& entries() const { return entries_; }

 private:
  std::vector<Anomaly> entries_;
};

}  // namespace idlescope::read
