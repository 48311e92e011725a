// Writes Programs: one method for each thing a thread can do. Knows what PyTorch and CUDA
// calls are made of (a blocking copy is a copy call plus a stream synchronisation; a copy
// from pageable memory holds the caller until it is done), but nothing about training loops.
#pragma once

#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/simulate/program.h"

namespace idlescope::simulate {

class ProgramBuilder {
 public:
  ProgramBuilder(const Machine& machine, uint16_t ranks);

  uint32_t name(std::string_view text);
  uint32_t process(uint16_t rank, uint32_t parent = kNone, int32_t worker_number = -1);
  uint32_t thread(Role role, uint16_t rank, uint32_t process, bool shared_cores = false);
  uint32_t flag();
  uint32_t lock();

  void run(uint32_t thread, Ns ns, Leaf leaf);
  void pause(uint32_t thread, Ns ns, Leaf leaf);
  void io(uint32_t thread, Ns ns, Leaf leaf);
  void set(uint32_t thread, uint32_t flag);
  void await(uint32_t thread, uint32_t flag, Ns wake_ns, Leaf leaf, bool hop = false);
  void lock(uint32_t thread, uint32_t lock, Leaf leaf);
  void unlock(uint32_t thread, uint32_t lock);

  // Device work. Returns the op.
  uint32_t launch(uint32_t thread, const OpSpec& op, std::initializer_list<uint32_t> deps = {});
  // Nodes are chained on one stream; one call.
  uint32_t launch_graph(uint32_t thread, std::vector<OpSpec> nodes);
  // cudaMemcpyAsync; pageable memory or `blocking_call`: returns when the copy has ended.
  uint32_t copy(uint32_t thread, const OpSpec& op, bool blocking_call, Leaf leaf,
                std::initializer_list<uint32_t> deps = {});
  // Copy as PyTorch does it without non_blocking: copy call, then stream synchronisation.
  uint32_t blocking_copy(uint32_t thread, const OpSpec& op, bool pageable, Leaf leaf);

  void stream_sync(uint32_t thread, uint16_t rank, uint16_t stream, Leaf leaf);
  void event_sync(uint32_t thread, uint32_t op, Leaf leaf);
  // cudaDeviceSynchronize, or a call that synchronises implicitly (cudaFree).
  void device_sync(uint32_t thread, uint16_t rank, trace::CallClass call_class,
                   std::string_view call_name, Ns work_ns, uint64_t bytes, Leaf leaf);
  void call(uint32_t thread, trace::CallClass call_class, std::string_view call_name, Ns ns,
            Leaf leaf, uint64_t bytes = 0, uint64_t object = 0, uint16_t stream = 0);

  uint32_t mark_begin(uint32_t thread, const MarkSpec& mark);
  void mark_end(uint32_t thread, uint32_t mark);
  uint32_t instant(uint32_t thread, const MarkSpec& mark);
  uint32_t range_begin(uint32_t thread, std::string_view label, trace::RangeCategory category);
  void step_mark(uint32_t thread, uint16_t rank, bool macro, std::string_view label,
                 int64_t number);
  void window(uint32_t thread, bool open);

  uint32_t collective(uint32_t ranks);
  uint32_t last_op(uint16_t rank, uint16_t stream) const;
  Program& program() { return program_; }

 private:
  Instruction& add(uint32_t thread, Do what, Leaf leaf, Ns ns);
  uint32_t add_op(const OpSpec& op, std::initializer_list<uint32_t> deps);
  uint32_t add_call(const CallSpec& call);

  Program program_;
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<uint32_t> last_op_;        // by rank and stream
  std::vector<uint32_t> last_launched_;  // by rank
  uint64_t next_event_ = 1;
};

}  // namespace idlescope::simulate
