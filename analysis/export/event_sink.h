// Tracks, slices, flows and counters of a recording, independent of any file format.
//
// In: walk() goes once over an analysed recording. Out: calls of a sink, one per file format.
// Order: a track is declared before it is used; the slices of one track come by begin, longer
// first. A flow id is given out by one slice and taken up by a later one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idlescope::diagnose {
struct Analysis;
}

namespace idlescope::exporting {

struct Track {
  enum class Kind { kProcess, kThread, kGroup, kSlices, kCounter };
  uint64_t id = 0;      // unique in the export, from 1
  uint64_t parent = 0;  // 0: none
  Kind kind = Kind::kSlices;
  std::string name;
  int64_t pid = 0;
  int64_t tid = 0;   // kThread
  int32_t rank = 0;  // order among siblings
  std::string unit;  // kCounter: "bytes", "%", …; empty: a count
};

struct Slice {
  uint64_t track = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // equal to begin_ns: an instant
  std::string_view name;
  std::string_view category;
  uint64_t flow_out = 0;  // 0: none
  uint64_t flow_in = 0;
  std::vector<std::pair<std::string_view, int64_t>> numbers;
  std::vector<std::pair<std::string_view, std::string>> texts;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void track(const Track& track) = 0;
  virtual void slice(const Slice& slice) = 0;
  virtual void counter(uint64_t track, int64_t time_ns, int64_t value) = 0;
  virtual void finish() = 0;
};

void walk(const diagnose::Analysis& analysis, EventSink& sink);

}  // namespace idlescope::exporting
