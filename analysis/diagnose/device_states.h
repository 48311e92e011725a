// What the device did at each time (A1), and the gaps between.
//
// In: the ops of one window of a device, merged over all streams. Out, to a sink in time
// order: busy pieces and gaps. First match wins at each ns:
//   1 a compute kernel is active             BUSY_COMPUTE
//   2 copy inside the device, memset         BUSY_MEM
//   3 communication or host copy only        blocker test: exposed, or part of the gap
//   4 nothing                                gap
//
//   compute  ████            ████        The chain of copies before q is exposed if q (or
//   H2D            ██▌██                 the host, before launching q) waited for its end;
//   D2H         ▒▒▒▒▒▒▒▒▒▒               the unrelated D2H is only coincident: the gap goes
//                  exposed   q           on below it.
//
// Invariant: pieces and gaps are disjoint and cover [begin of the window, last op end).
#pragma once

#include <vector>

#include "analysis/diagnose/call_leaf.h"
#include "analysis/diagnose/constants.h"
#include "analysis/diagnose/gap_split.h"
#include "analysis/diagnose/piece.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

class StateSink {
 public:
  virtual ~StateSink() = default;
  virtual void busy(const Piece& piece) = 0;
  // No work from g0 to g1, when `op` started; `previous`: the op that ended last before.
  virtual void gap(Ns g0, Ns g1, uint32_t op, uint32_t previous) = 0;
  // Copy or communication without compute beside it that nothing waited for; lies in a gap.
  virtual void coincident(uint32_t /*op*/, Ns /*begin_ns*/, Ns /*end_ns*/) {}
};

struct HiddenTime {
  Ns copy_ns = 0;  // under compute
  Ns comm_ns = 0;
};

class DeviceStates {
 public:
  DeviceStates(const model::Model& model, const model::DeviceTimeline& device,
               const Constants& constants, const CallLeaf& calls, const GapSplit& gaps);

  // Ops [first, last) of the timeline's order; the sweep starts at begin_ns. Returns where
  // it ended: an op may outlive its window, and the next sweep must not start before.
  Ns sweep(size_t first, size_t last, Ns begin_ns, StateSink& sink);

  const HiddenTime& hidden() const { return hidden_; }

 private:
  struct Part {  // one op clipped to the absence of compute
    Ns begin_ns;
    Ns end_ns;
    uint32_t op;
    model::Work work;
  };
  struct Run {  // without a hole
    Ns begin_ns;
    Ns end_ns;
    size_t first;  // into parts_
    size_t last;
    bool exposed = false;
    bool memory_only = true;
    Grade grade = Grade::kA;
  };

  void absence(Ns begin_ns, Ns end_ns, uint32_t next_compute, StateSink& sink);
  void find_runs();
  void judge_chains(uint32_t next_compute);
  void judge_run(size_t run);
  Ns follow_limit(uint32_t op) const;
  bool is_exposed(uint32_t last_op, Ns chain_end_ns, uint32_t next_compute, Grade& grade) const;
  bool host_waited(uint32_t op, uint32_t on_thread_of_call) const;
  bool edge_between(const read::Op& producer, const read::Op& consumer) const;
  void emit_run(const Run& run, StateSink& sink) const;
  void index_edges();

  struct Edge {
    uint32_t consumer_stream;
    Ns wait_ns;
    uint32_t producer_stream;
    Ns record_ns;
  };

  const model::DeviceTimeline& device_;
  const read::Process& process_;
  const model::ProcessModel& owner_;
  const CallLeaf& calls_;
  const GapSplit& gaps_;
  Ns host_return_max_ns_;
  std::vector<Edge> edges_;        // by (consumer, wait)
  std::vector<uint32_t> pending_;  // non-compute ops that may overlap the next absence
  std::vector<Part> parts_;
  std::vector<Run> runs_;
  uint32_t last_ended_ = kNone;  // compute op that ended last
  HiddenTime hidden_;
};

}  // namespace idlescope::diagnose
