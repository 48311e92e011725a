// The running simulation: state of threads, locks, ops, shared resources, and the rules by
// which they move on. Threads are in engine.cpp, device ops in engine_ops.cpp.
#pragma once

#include <deque>
#include <queue>
#include <unordered_map>
#include <vector>

#include "analysis/simulate/engine.h"
#include "analysis/simulate/shared_resource.h"

namespace idlescope::simulate {

struct ThreadState {
  size_t pc = 0;
  Ns begin_ns = 0;       // of the current instruction
  bool running = false;  // current instruction has been started
  Ns locked_until_ns = 0;
  uint32_t waiting_ops = 0;    // ops the current kSync / blocking kLaunch still waits for
  std::deque<uint32_t> items;  // pin threads
  bool done = false;
};

struct LockState {
  uint32_t holder = kNone;
  std::deque<uint32_t> queue;       // threads that want to take it
  std::vector<uint32_t> observers;  // threads that wait until nobody holds it
};

struct OpState {
  bool launched = false;
  bool resolved = false;
  uint32_t missing = 0;  // predecessors whose end is not known yet
  Ns ready_ns = 0;       // by its launch
  uint32_t stream_before = kNone;
};

struct Event {
  Ns time;
  uint64_t sequence;
  uint32_t thread;  // kNone: a shared resource
  uint32_t resource;
  uint64_t generation;
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : sequence > other.sequence;
  }
};

class Engine {
 public:
  explicit Engine(const Program& program);
  Execution run();

 private:
  // Threads.
  void schedule(uint32_t thread, Ns time);
  void proceed(uint32_t thread, Ns now);
  bool start(uint32_t thread, const Instruction& in, Ns now);
  void finish(uint32_t thread, Ns now);
  void proceed_pin(uint32_t thread, Ns now);
  bool start_launch(uint32_t thread, const Instruction& in, Ns now);
  bool start_sync(uint32_t thread, const Instruction& in, Ns now);
  void end_wait(uint32_t thread, Ns now);
  void set_flag(uint32_t flag, uint32_t thread, Ns now);
  void unlock(uint32_t lock, Ns now);
  bool driver_locked(uint32_t thread) const;
  Ns record_cost(uint32_t thread) const;
  // Ops.
  void launch_op(uint32_t op, uint32_t thread, Ns now, Ns ready_ns);
  void resolve(uint32_t op);
  void settle(uint32_t op);
  uint32_t engine_of(const OpSpec& spec) const;
  // Shared resources: worker cores, then one storage per rank.
  void enter(uint32_t resource, uint32_t thread, Ns work_ns, Ns now);
  void reschedule(uint32_t resource, Ns now);

  const Program& program_;
  Execution out_;
  std::vector<ThreadState> threads_;
  std::vector<LockState> locks_;
  std::vector<OpState> ops_;
  std::vector<uint32_t> last_on_stream_;
  std::vector<std::deque<uint32_t>> queued_;  // by stream: launched, maybe not begun
  std::vector<uint32_t> last_on_engine_;      // by rank and direction
  std::unordered_map<uint32_t, std::vector<uint32_t>> op_waiters_;     // threads
  std::unordered_map<uint32_t, std::vector<uint32_t>> op_dependents_;  // ops
  std::unordered_map<uint32_t, std::vector<uint32_t>> flag_waiters_;
  std::vector<std::vector<uint32_t>> arrived_;  // by collective
  std::vector<SharedResource> resources_;
  std::vector<uint64_t> generation_;
  std::vector<int32_t> open_window_;  // by rank; -1: none
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t sequence_ = 0;
  uint32_t launches_ = 0;
  size_t working_ = 0;  // threads that must reach their end
  Ns now_ = 0;
};

}  // namespace idlescope::simulate
