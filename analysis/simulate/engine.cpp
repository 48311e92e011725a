#include "analysis/simulate/engine.h"

#include <algorithm>

#include "analysis/simulate/engine_state.h"

namespace idlescope::simulate {

Engine::Engine(const Program& program)
    : program_(program),
      threads_(program.threads.size()),
      locks_(program.locks),
      ops_(program.ops.size()),
      last_on_stream_(size_t{program.ranks} * kStreams, kNone),
      queued_(size_t{program.ranks} * kStreams),
      last_on_engine_(size_t{program.ranks} * 2, kNone),
      arrived_(program.collective_ranks.size()),
      generation_(size_t{1} + program.ranks, 0),
      open_window_(program.ranks, -1) {
  out_.threads.resize(program.threads.size());
  out_.ops.resize(program.ops.size());
  out_.flag_ns.assign(program.flags, -1);
  out_.flag_thread.assign(program.flags, kNone);
  out_.mark_begin_ns.assign(program.marks.size(), -1);
  out_.mark_end_ns.assign(program.marks.size(), -1);
  out_.mark_thread.assign(program.marks.size(), kNone);
  resources_.emplace_back(program.machine.worker_cores);
  for (uint16_t r = 0; r < program.ranks; ++r) resources_.emplace_back(program.storage_streams);
}

void Engine::schedule(uint32_t thread, Ns time) { events_.push({time, sequence_++, thread, 0, 0}); }

void Engine::enter(uint32_t resource, uint32_t thread, Ns work_ns, Ns now) {
  resources_[resource].add(thread, work_ns, now);
  reschedule(resource, now);
}

void Engine::reschedule(uint32_t resource, Ns now) {
  ++generation_[resource];
  Ns done = resources_[resource].next_done(now);
  if (done >= 0) events_.push({done, sequence_++, kNone, resource, generation_[resource]});
}

Ns Engine::record_cost(uint32_t thread) const {
  return open_window_[program_.threads[thread].rank] >= 0 ? program_.machine.record_call_ns : 0;
}

bool Engine::driver_locked(uint32_t thread) const {
  uint32_t holder = locks_[program_.threads[thread].rank].holder;
  return holder != kNone && holder != thread;
}

bool Engine::start_launch(uint32_t thread, const Instruction& in, Ns now) {
  ThreadState& state = threads_[thread];
  if (driver_locked(thread)) {
    locks_[program_.threads[thread].rank].observers.push_back(thread);
    return false;
  }
  if (now > state.begin_ns && state.locked_until_ns == 0) state.locked_until_ns = now;
  const OpSpec& first = program_.ops[in.arg];
  std::deque<uint32_t>& queue = queued_[size_t{first.rank} * kStreams + first.stream];
  while (!queue.empty() && ops_[queue.front()].resolved &&
         out_.ops[queue.front()].begin_ns <= now) {
    queue.pop_front();
  }
  if (static_cast<int64_t>(queue.size()) >= program_.machine.queue_depth) {
    uint32_t front = queue.front();
    if (ops_[front].resolved) {
      schedule(thread, out_.ops[front].begin_ns);
    } else {
      state.waiting_ops = 1;
      op_waiters_[front].push_back(thread);
    }
    return false;
  }
  Ns latency = std::max(program_.machine.launch_latency_ns, in.ns);
  for (uint32_t i = 0; i < in.count; ++i) launch_op(in.arg + i, thread, now, now + latency);
  state.running = true;
  if (!in.blocking) {
    schedule(thread, now + in.ns + record_cost(thread));
    return false;
  }
  uint32_t last = in.arg + in.count - 1;
  if (ops_[last].resolved) {
    end_wait(thread, now);
  } else {
    state.waiting_ops = 1;
    op_waiters_[last].push_back(thread);
  }
  return false;
}

bool Engine::start_sync(uint32_t thread, const Instruction& in, Ns now) {
  ThreadState& state = threads_[thread];
  state.running = true;
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t op = program_.targets[in.arg + i];
    if (ops_[op].resolved) continue;
    op_waiters_[op].push_back(thread);
    ++state.waiting_ops;
  }
  if (state.waiting_ops == 0) end_wait(thread, now);
  return false;
}

// The ops that a thread waits for have known ends: schedule its return. Also wakes a launch
// that found the queue full.
void Engine::end_wait(uint32_t thread, Ns now) {
  const Instruction& in = program_.threads[thread].code[threads_[thread].pc];
  if (!threads_[thread].running) {
    schedule(thread, now);
    return;
  }
  Ns last = 0;
  if (in.what == Do::kLaunch) {
    last = out_.ops[in.arg + in.count - 1].end_ns;
  } else {
    for (uint32_t i = 0; i < in.count; ++i) {
      last = std::max(last, out_.ops[program_.targets[in.arg + i]].end_ns);
    }
  }
  const Machine& machine = program_.machine;
  Ns back = last > now ? last + machine.sync_return_ns : now + machine.sync_call_ns;
  if (in.what == Do::kSync) back += in.ns;
  schedule(thread, back + record_cost(thread));
}

void Engine::set_flag(uint32_t flag, uint32_t thread, Ns now) {
  if (out_.flag_ns[flag] >= 0) return;
  out_.flag_ns[flag] = now;
  out_.flag_thread[flag] = thread;
  uint32_t item = flag < program_.pin_item_of_flag.size() ? program_.pin_item_of_flag[flag] : kNone;
  if (item != kNone) {
    uint32_t pin = program_.pin_items[item].thread;
    threads_[pin].items.push_back(item);
    if (!threads_[pin].running) proceed_pin(pin, now);
  }
  auto it = flag_waiters_.find(flag);
  if (it == flag_waiters_.end()) return;
  std::vector<uint32_t> waiters = std::move(it->second);
  flag_waiters_.erase(it);
  for (uint32_t other : waiters) {
    threads_[other].running = true;
    schedule(other, now + program_.threads[other].code[threads_[other].pc].ns);
  }
}

void Engine::unlock(uint32_t lock, Ns now) {
  LockState& state = locks_[lock];
  state.holder = kNone;
  if (!state.queue.empty()) {
    state.holder = state.queue.front();
    state.queue.pop_front();
    threads_[state.holder].running = true;
    schedule(state.holder, now);
    return;
  }
  for (uint32_t thread : state.observers) schedule(thread, now);
  state.observers.clear();
}

// A pin thread takes arrived items in order: allocate (under the driver lock), copy, hand over.
void Engine::proceed_pin(uint32_t thread, Ns now) {
  ThreadState& state = threads_[thread];
  LockState& driver = locks_[program_.threads[thread].rank];
  if (state.running) {
    const PinItem& item = program_.pin_items[state.items.front()];
    if (item.allocate_ns > 0 && state.waiting_ops == 1) {
      state.waiting_ops = 0;  // allocation done, now the copy
      unlock(program_.threads[thread].rank, now);
      schedule(thread, now + item.unpickle_ns + item.copy_ns);
      return;
    }
    out_.threads[thread].push_back({state.begin_ns, now, state.items.front(), 0});
    uint32_t flag = item.result_flag;
    state.items.pop_front();
    state.running = false;
    set_flag(flag, thread, now);
  }
  if (state.items.empty()) return;
  const PinItem& item = program_.pin_items[state.items.front()];
  state.running = true;
  state.begin_ns = now;
  if (item.allocate_ns > 0 && driver.holder == kNone) {
    driver.holder = thread;
    state.waiting_ops = 1;
    schedule(thread, now + item.allocate_ns);
  } else {
    schedule(thread, now + item.unpickle_ns + item.allocate_ns + item.copy_ns);
  }
}

// Begins an instruction. True: it takes no time and is finished.
bool Engine::start(uint32_t thread, const Instruction& in, Ns now) {
  ThreadState& state = threads_[thread];
  const ThreadSpec& spec = program_.threads[thread];
  switch (in.what) {
    case Do::kRun:
      if (in.ns <= 0) return true;
      state.running = true;
      if (spec.shared_cores) {
        enter(0, thread, in.ns, now);
      } else {
        schedule(thread, now + in.ns);
      }
      return false;
    case Do::kPause:
      if (in.ns <= 0) return true;
      state.running = true;
      schedule(thread, now + in.ns);
      return false;
    case Do::kIo:
      if (in.ns <= 0) return true;
      state.running = true;
      enter(1U + spec.rank, thread, in.ns, now);
      return false;
    case Do::kLaunch:
      return start_launch(thread, in, now);
    case Do::kSync:
      return start_sync(thread, in, now);
    case Do::kCall:
      if (driver_locked(thread)) {
        locks_[spec.rank].observers.push_back(thread);
        return false;
      }
      if (now > state.begin_ns) state.locked_until_ns = now;
      state.running = true;
      schedule(thread, now + in.ns + record_cost(thread));
      return false;
    case Do::kSet:
      set_flag(in.arg, thread, now);
      return true;
    case Do::kAwait:
      if (out_.flag_ns[in.arg] >= 0) return true;
      flag_waiters_[in.arg].push_back(thread);
      return false;
    case Do::kLock: {
      LockState& lock = locks_[in.arg];
      if (lock.holder == kNone) {
        lock.holder = thread;
        return true;
      }
      lock.queue.push_back(thread);
      return false;
    }
    case Do::kUnlock:
      unlock(in.arg, now);
      return true;
    case Do::kMarkBegin:
      out_.mark_begin_ns[in.arg] = now;
      out_.mark_thread[in.arg] = thread;
      return true;
    case Do::kMarkEnd:
      out_.mark_end_ns[in.arg] = now;
      return true;
    case Do::kWindowOpen:
      open_window_[spec.rank] = static_cast<int32_t>(out_.windows.size());
      out_.windows.push_back({spec.rank, now, -1});
      return true;
    case Do::kWindowClose:
      if (open_window_[spec.rank] >= 0) {
        out_.windows[static_cast<size_t>(open_window_[spec.rank])].end_ns = now;
        open_window_[spec.rank] = -1;
      }
      return true;
  }
  return true;
}

// The current instruction is over: log it.
void Engine::finish(uint32_t thread, Ns now) {
  ThreadState& state = threads_[thread];
  if (now > state.begin_ns) {
    out_.threads[thread].push_back(
        {state.begin_ns, now, static_cast<uint32_t>(state.pc), state.locked_until_ns});
  }
  ++state.pc;
  state.begin_ns = now;
  state.running = false;
  state.locked_until_ns = 0;
}

void Engine::proceed(uint32_t thread, Ns now) {
  const std::vector<Instruction>& code = program_.threads[thread].code;
  ThreadState& state = threads_[thread];
  if (state.done) return;
  if (state.running) finish(thread, now);
  while (state.pc < code.size()) {
    if (!start(thread, code[state.pc], now)) return;
    finish(thread, now);
  }
  state.done = true;
  if (program_.threads[thread].role != Role::kBackground) --working_;
}

Execution Engine::run() {
  for (uint32_t t = 0; t < program_.threads.size(); ++t) {
    Role role = program_.threads[t].role;
    if (role == Role::kPin) continue;
    if (role != Role::kBackground) ++working_;
    schedule(t, 0);
  }
  while (!events_.empty() && working_ > 0) {
    Event event = events_.top();
    events_.pop();
    now_ = event.time;
    if (event.thread != kNone) {
      if (program_.threads[event.thread].role == Role::kPin) {
        proceed_pin(event.thread, now_);
      } else {
        proceed(event.thread, now_);
      }
    } else if (event.generation == generation_[event.resource]) {
      std::vector<uint32_t> done = resources_[event.resource].take_done(now_);
      reschedule(event.resource, now_);
      for (uint32_t thread : done) proceed(thread, now_);
    }
  }
  out_.end_ns = std::max(out_.end_ns, now_);
  for (WindowRun& window : out_.windows) {
    if (window.end_ns < 0) window.end_ns = out_.end_ns;
  }
  out_.complete = working_ == 0;
  return out_;
}

Execution execute(const Program& program) { return Engine(program).run(); }

}  // namespace idlescope::simulate
