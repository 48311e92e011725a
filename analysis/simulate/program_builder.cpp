#include "analysis/simulate/program_builder.h"

#include <algorithm>
#include <string>

namespace idlescope::simulate {

ProgramBuilder::ProgramBuilder(const Machine& machine, uint16_t ranks)
    : last_op_(size_t{ranks} * kStreams, kNone), last_launched_(ranks, kNone) {
  program_.machine = machine;
  program_.ranks = ranks;
  program_.locks = ranks;
}

uint32_t ProgramBuilder::name(std::string_view text) {
  auto [it, added] = names_.try_emplace(std::string(text), 0);
  if (added) {
    it->second = static_cast<uint32_t>(program_.names.size());
    program_.names.emplace_back(text);
  }
  return it->second;
}

uint32_t ProgramBuilder::process(uint16_t rank, uint32_t parent, int32_t worker_number) {
  program_.processes.push_back({rank, parent != kNone, parent, worker_number});
  return static_cast<uint32_t>(program_.processes.size() - 1);
}

uint32_t ProgramBuilder::thread(Role role, uint16_t rank, uint32_t process, bool shared_cores) {
  program_.threads.push_back({role, rank, process, shared_cores, {}});
  return static_cast<uint32_t>(program_.threads.size() - 1);
}

uint32_t ProgramBuilder::flag() {
  program_.pin_item_of_flag.push_back(kNone);
  return program_.flags++;
}

uint32_t ProgramBuilder::lock() { return program_.locks++; }

Instruction& ProgramBuilder::add(uint32_t thread, Do what, Leaf leaf, Ns ns) {
  Instruction in;
  in.what = what;
  in.leaf = leaf;
  in.ns = ns;
  program_.threads[thread].code.push_back(in);
  return program_.threads[thread].code.back();
}

void ProgramBuilder::run(uint32_t thread, Ns ns, Leaf leaf) {
  if (ns > 0) add(thread, Do::kRun, leaf, ns);
}

void ProgramBuilder::pause(uint32_t thread, Ns ns, Leaf leaf) {
  if (ns > 0) add(thread, Do::kPause, leaf, ns);
}

void ProgramBuilder::io(uint32_t thread, Ns ns, Leaf leaf) {
  if (ns > 0) add(thread, Do::kIo, leaf, ns);
}

void ProgramBuilder::set(uint32_t thread, uint32_t flag) {
  add(thread, Do::kSet, report::LEAF_UNSPECIFIED, 0).arg = flag;
}

void ProgramBuilder::await(uint32_t thread, uint32_t flag, Ns wake_ns, Leaf leaf, bool hop) {
  Instruction& in = add(thread, Do::kAwait, leaf, wake_ns);
  in.arg = flag;
  in.hop = hop;
}

void ProgramBuilder::lock(uint32_t thread, uint32_t lock, Leaf leaf) {
  add(thread, Do::kLock, leaf, 0).arg = lock;
}

void ProgramBuilder::unlock(uint32_t thread, uint32_t lock) {
  add(thread, Do::kUnlock, report::LEAF_UNSPECIFIED, 0).arg = lock;
}

uint32_t ProgramBuilder::add_op(const OpSpec& op, std::initializer_list<uint32_t> deps) {
  auto id = static_cast<uint32_t>(program_.ops.size());
  program_.ops.push_back(op);
  OpSpec& added = program_.ops.back();
  added.first_dep = static_cast<uint32_t>(program_.deps.size());
  for (uint32_t dep : deps) {
    if (dep != kNone) program_.deps.push_back(dep);
  }
  added.dep_count = static_cast<uint32_t>(program_.deps.size()) - added.first_dep;
  last_op_[size_t{op.rank} * kStreams + op.stream] = id;
  last_launched_[op.rank] = id;
  return id;
}

uint32_t ProgramBuilder::add_call(const CallSpec& call) {
  program_.calls.push_back(call);
  return static_cast<uint32_t>(program_.calls.size() - 1);
}

uint32_t ProgramBuilder::launch(uint32_t thread, const OpSpec& op,
                                std::initializer_list<uint32_t> deps) {
  const Machine& m = program_.machine;
  // An edge between streams is made of two cheap calls: record on the producer's stream,
  // wait on the consumer's.
  for (uint32_t dep : deps) {
    if (dep == kNone || program_.ops[dep].stream == op.stream) continue;
    uint64_t event = 0xE000 + next_event_++;
    call(thread, trace::CALL_EVENT_RECORD, "cudaEventRecord", m.small_call_ns, report::LAUNCH_LEAF,
         0, event, program_.ops[dep].stream);
    call(thread, trace::CALL_STREAM_WAIT_EVENT, "cudaStreamWaitEvent", m.small_call_ns,
         report::LAUNCH_LEAF, 0, event, op.stream);
  }
  uint32_t id = add_op(op, deps);
  bool memset = op.kind == trace::OP_MEMSET;
  uint32_t call_id = add_call({memset ? trace::CALL_MEMSET : trace::CALL_LAUNCH,
                               {},
                               name(memset ? "cudaMemsetAsync" : "cudaLaunchKernel"),
                               op.stream,
                               op.bytes,
                               0});
  Instruction& in = add(thread, Do::kLaunch, report::LAUNCH_LEAF, m.launch_call_ns);
  in.arg = id;
  in.count = 1;
  in.call = call_id;
  return id;
}

uint32_t ProgramBuilder::launch_graph(uint32_t thread, std::vector<OpSpec> nodes) {
  uint32_t first = kNone;
  for (OpSpec& node : nodes) {
    uint32_t id = add_op(node, {});
    if (first == kNone) first = id;
  }
  auto count = static_cast<uint32_t>(nodes.size());
  uint32_t call_id = add_call({trace::CALL_GRAPH_LAUNCH,
                               {},
                               name("cudaGraphLaunch"),
                               nodes.front().stream,
                               0,
                               nodes.front().graph});
  Instruction& in = add(thread, Do::kLaunch, report::LAUNCH_LEAF,
                        program_.machine.launch_call_ns + 60 * static_cast<Ns>(count));
  in.arg = first;
  in.count = count;
  in.call = call_id;
  return first + count - 1;
}

uint32_t ProgramBuilder::copy(uint32_t thread, const OpSpec& op, bool blocking_call, Leaf leaf,
                              std::initializer_list<uint32_t> deps) {
  uint32_t id = add_op(op, deps);
  uint32_t call_id =
      add_call({trace::CALL_MEMCPY, op.copy_kind, name("cudaMemcpyAsync"), op.stream, op.bytes, 0});
  Instruction& in = add(thread, Do::kLaunch, leaf, program_.machine.launch_call_ns);
  in.arg = id;
  in.count = 1;
  in.blocking = blocking_call;
  in.call = call_id;
  return id;
}

uint32_t ProgramBuilder::blocking_copy(uint32_t thread, const OpSpec& op, bool pageable,
                                       Leaf leaf) {
  uint32_t id = copy(thread, op, pageable, leaf);
  stream_sync(thread, op.rank, op.stream, leaf);
  return id;
}

void ProgramBuilder::stream_sync(uint32_t thread, uint16_t rank, uint16_t stream, Leaf leaf) {
  uint32_t last = last_op(rank, stream);
  uint32_t call_id =
      add_call({trace::CALL_STREAM_SYNC, {}, name("cudaStreamSynchronize"), stream, 0, 0});
  Instruction& in = add(thread, Do::kSync, leaf, 0);
  in.arg = static_cast<uint32_t>(program_.targets.size());
  in.count = last == kNone ? 0 : 1;
  in.call = call_id;
  if (last != kNone) program_.targets.push_back(last);
}

void ProgramBuilder::event_sync(uint32_t thread, uint32_t op, Leaf leaf) {
  uint64_t event = 0xE000 + next_event_++;
  call(thread, trace::CALL_EVENT_RECORD, "cudaEventRecord", program_.machine.small_call_ns,
       report::LAUNCH_LEAF, 0, event, program_.ops[op].stream);
  uint32_t call_id =
      add_call({trace::CALL_EVENT_SYNC, {}, name("cudaEventSynchronize"), 0, 0, event});
  Instruction& in = add(thread, Do::kSync, leaf, 0);
  in.arg = static_cast<uint32_t>(program_.targets.size());
  in.count = 1;
  in.call = call_id;
  program_.targets.push_back(op);
}

void ProgramBuilder::device_sync(uint32_t thread, uint16_t rank, trace::CallClass call_class,
                                 std::string_view call_name, Ns work_ns, uint64_t bytes,
                                 Leaf leaf) {
  uint32_t call_id = add_call({call_class, {}, name(call_name), 0, bytes, 0});
  Instruction& in = add(thread, Do::kSync, leaf, work_ns);
  in.arg = static_cast<uint32_t>(program_.targets.size());
  in.call = call_id;
  for (uint16_t s = 0; s < kStreams; ++s) {
    uint32_t last = last_op(rank, s);
    if (last == kNone) continue;
    program_.targets.push_back(last);
    ++in.count;
  }
}

void ProgramBuilder::call(uint32_t thread, trace::CallClass call_class, std::string_view call_name,
                          Ns ns, Leaf leaf, uint64_t bytes, uint64_t object, uint16_t stream) {
  uint32_t call_id = add_call({call_class, {}, name(call_name), stream, bytes, object});
  add(thread, Do::kCall, leaf, ns).call = call_id;
}

uint32_t ProgramBuilder::mark_begin(uint32_t thread, const MarkSpec& mark) {
  program_.marks.push_back(mark);
  auto id = static_cast<uint32_t>(program_.marks.size() - 1);
  add(thread, Do::kMarkBegin, report::LEAF_UNSPECIFIED, 0).arg = id;
  return id;
}

void ProgramBuilder::mark_end(uint32_t thread, uint32_t mark) {
  add(thread, Do::kMarkEnd, report::LEAF_UNSPECIFIED, 0).arg = mark;
}

uint32_t ProgramBuilder::instant(uint32_t thread, const MarkSpec& mark) {
  uint32_t id = mark_begin(thread, mark);
  mark_end(thread, id);
  return id;
}

uint32_t ProgramBuilder::range_begin(uint32_t thread, std::string_view label,
                                     trace::RangeCategory category) {
  MarkSpec mark;
  mark.kind = trace::EVENT_RANGE;
  mark.a = name(label);
  mark.a_is_name = true;
  mark.b = category;
  return mark_begin(thread, mark);
}

void ProgramBuilder::step_mark(uint32_t thread, uint16_t rank, bool macro, std::string_view label,
                               int64_t number) {
  MarkSpec mark;
  mark.kind = trace::EVENT_STEP;
  mark.a = trace::STEP_SOURCE_OPTIMIZER;
  mark.b = number;
  mark.c = name(label);
  mark.c_is_name = true;
  uint32_t id = instant(thread, mark);
  program_.steps.push_back({rank, id, macro, last_launched_[rank]});
}

void ProgramBuilder::window(uint32_t thread, bool open) {
  add(thread, open ? Do::kWindowOpen : Do::kWindowClose, report::LEAF_UNSPECIFIED, 0);
}

uint32_t ProgramBuilder::collective(uint32_t ranks) {
  program_.collective_ranks.push_back(ranks);
  return static_cast<uint32_t>(program_.collective_ranks.size() - 1);
}

uint32_t ProgramBuilder::last_op(uint16_t rank, uint16_t stream) const {
  return last_op_[size_t{rank} * kStreams + stream];
}

}  // namespace idlescope::simulate
