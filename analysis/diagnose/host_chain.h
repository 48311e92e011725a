// What the host did while the device waited for the next launch (B2), walked backwards.
//
// In: a thread, the time its launch call ends (or the gap does), the time the gap began.
// Out: host pieces in time order that cover [stop, from) exactly, each with the segment it
// came from. Where the thread was silent for long and another thread of the process worked
// right before, the walk goes on there (a hop): the thread that launched is not always the
// thread that caused.
//
//   autograd          silent          ├launch┤├launch┤        stop = gap begin
//   main     ├── next() ──┤ forward… ├ backward()
//              ◄──────────────────────┘ hop, then on along main
//
// Invariant: pieces are disjoint, in order, and cover [stop, from) exactly. At most four
// hops, then UNKNOWN_NOTHREAD.
#pragma once

#include <vector>

#include "analysis/diagnose/call_leaf.h"
#include "analysis/diagnose/piece.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

struct HostPiece {
  enum class Kind : uint8_t {
    kPlain,  // takes as long as it took
    kData,   // next(): ends when the batch is there
    kWaits,  // a call that returns when the device has done something
  };
  Ns begin_ns = 0;
  Ns end_ns = 0;
  Kind kind = Kind::kPlain;
  report::Leaf leaf{};
  Grade grade = Grade::kA;
  uint32_t call = kNone;   // Process::calls
  uint32_t event = kNone;  // Process::host_events
  uint32_t batch = kNone;  // kData: LoaderHistory::batches
  uint32_t thread = kNone;
  // Extent of the call or event, which may begin before `stop`.
  Ns whole_begin_ns = 0;
  Ns whole_end_ns = 0;
};

class HostChain {
 public:
  HostChain(const model::Model& model, const model::DeviceTimeline& device,
            const Constants& constants, const CallLeaf& calls);

  // Appends pieces for [stop_ns, from_ns) to `out` (cleared first). `thread`: index into
  // ProcessThreads::threads. Returns the number of hops.
  uint32_t walk(uint32_t thread, Ns from_ns, Ns stop_ns, std::vector<HostPiece>& out) const;

  // Leaf of host time without any record, by the range around it.
  report::Leaf range_leaf(uint32_t thread, Ns time_ns, Grade& grade) const;

 private:
  HostPiece piece_of(const model::Segment& segment, uint32_t thread, Ns begin_ns, Ns end_ns) const;
  void add_silent(uint32_t thread, Ns begin_ns, Ns end_ns, bool in_burst, bool hopped,
                  std::vector<HostPiece>& out) const;
  uint32_t hop_from(uint32_t thread, Ns silent_begin_ns, Ns at_ns) const;
  bool is_launch(const model::Segment& segment) const;
  Ns launch_before(const model::ThreadTimeline& thread, size_t index, Ns limit_ns) const;
  bool outside_cells(Ns time_ns) const;
  bool between_copies(uint32_t next_call) const;
  bool slept_for_input(const HostPiece& piece, uint32_t next_call) const;
  double cpu_share(const model::ThreadTimeline& thread, Ns begin_ns, Ns end_ns) const;

  const model::Model& model_;
  const read::Process& process_;
  const model::ProcessModel& owner_;
  uint32_t process_index_;
  const Constants& constants_;
  const CallLeaf& calls_;
  std::vector<model::Stretch> cells_;  // notebook cells, by begin
};

}  // namespace idlescope::diagnose
