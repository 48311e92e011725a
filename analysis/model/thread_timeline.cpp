#include "analysis/model/thread_timeline.h"

#include <algorithm>
#include <map>

namespace idlescope::model {
namespace {

// Fields in which host events are ranges that only name time.
bool is_context(const read::HostEvent& event) {
  if (event.kind != trace::EVENT_RANGE) return false;
  switch (event.b) {
    case trace::RANGE_COMPILE:
    case trace::RANGE_FRAMEWORK_OP:
    case trace::RANGE_COMMUNICATION:
      return false;
    default:
      return true;
  }
}

bool names_host_leaf(int64_t category) {
  switch (category) {
    case trace::RANGE_OPTIMIZER:
    case trace::RANGE_ZERO_GRAD:
    case trace::RANGE_FORWARD:
    case trace::RANGE_BACKWARD:
    case trace::RANGE_LOGGING:
    case trace::RANGE_EVALUATION:
      return true;
    default:
      return false;
  }
}

// kOpaque: what is inside belongs to it (a copy inside torch.save is the checkpoint's).
enum class Rank : uint8_t { kNone, kActivity, kClassed, kOpaque };

// Whether an event is an interval of the segment row at all.
Rank rank_of_event(const read::HostEvent& event) {
  switch (event.kind) {
    case trace::EVENT_LOADER_CREATE:
    case trace::EVENT_LOADER_NEXT:
    case trace::EVENT_LOADER_END:
    case trace::EVENT_LOADER_RESET:
    case trace::EVENT_LOADER_SHUTDOWN:
    case trace::EVENT_GC:
      return Rank::kClassed;
    case trace::EVENT_CHECKPOINT:
    case trace::EVENT_CAPTURE:
      return Rank::kOpaque;
    case trace::EVENT_RANGE:
      if (event.b == trace::RANGE_COMPILE) return Rank::kOpaque;
      if (event.b == trace::RANGE_COMMUNICATION) return Rank::kClassed;
      return event.b == trace::RANGE_FRAMEWORK_OP ? Rank::kActivity : Rank::kNone;
    case trace::EVENT_PIN_COPY:
    case trace::EVENT_WORKER_FETCH:
      return Rank::kActivity;
    default:
      return Rank::kNone;
  }
}

Rank rank_of_call(trace::CallClass call_class) {
  return call_class == trace::CALL_QUERY ? Rank::kActivity : Rank::kClassed;
}

// A call inside a call shows only where it is of another kind than what encloses it:
// a module load inside a launch does, cuLaunchKernel inside cudaLaunchKernel does not.
bool shows_inside_parent(trace::CallClass inner, trace::CallClass outer) {
  if (inner == outer) return false;
  switch (inner) {
    case trace::CALL_MODULE_LOAD:
    case trace::CALL_ALLOC_DEVICE:
    case trace::CALL_FREE_DEVICE:
    case trace::CALL_ALLOC_PINNED:
    case trace::CALL_FREE_PINNED:
    case trace::CALL_GRAPH_INSTANTIATE:
      return true;
    default:
      return false;
  }
}

struct Item {
  Ns begin_ns;
  Ns end_ns;
  uint32_t ref;
  Source source;
  Rank rank;
};

// Turns nested intervals, given by (begin, longer first), into disjoint segments.
class Flattener {
 public:
  explicit Flattener(std::vector<Segment>& out) : out_(out) {}

  void add(const Item& item) {
    close_until(item.begin_ns);
    if (!stack_.empty()) {
      if (item.rank == Rank::kActivity) return;  // enclosed: shows nothing new
      if (stack_.back().rank == Rank::kOpaque && item.source != Source::kOverhead) return;
    }
    emit_top(item.begin_ns);
    stack_.push_back(item);
    at_ = std::max(at_, item.begin_ns);
  }

  void finish() { close_until(INT64_MAX); }

 private:
  void close_until(Ns time_ns) {
    while (!stack_.empty() && stack_.back().end_ns <= time_ns) {
      emit_top(stack_.back().end_ns);
      stack_.pop_back();
    }
  }

  void emit_top(Ns end_ns) {
    if (stack_.empty() || end_ns <= at_) return;
    const Item& top = stack_.back();
    const bool classed = top.rank != Rank::kActivity;
    if (!out_.empty() && out_.back().end_ns == at_ && out_.back().ref == top.ref &&
        out_.back().source == top.source) {
      out_.back().end_ns = end_ns;
    } else {
      out_.push_back({at_, end_ns, top.ref, top.source, classed});
    }
    at_ = end_ns;
  }

  std::vector<Segment>& out_;
  std::vector<Item> stack_;
  Ns at_ = INT64_MIN;
};

struct ThreadInputs {
  size_t call_first = 0, call_last = 0;    // range in Process::calls
  size_t event_first = 0, event_last = 0;  // range in Process::host_events
  std::vector<uint32_t> overheads;
};

std::map<uint32_t, ThreadInputs> split_by_thread(const read::Process& process) {
  std::map<uint32_t, ThreadInputs> inputs;
  const auto thread_of_call = [&](const read::Call& call) {
    return process.call_descriptors[call.descriptor].thread_id;
  };
  for (size_t i = 0; i < process.calls.size();) {
    const uint32_t thread = thread_of_call(process.calls[i]);
    size_t end = i + 1;
    while (end < process.calls.size() && thread_of_call(process.calls[end]) == thread) ++end;
    inputs[thread].call_first = i;
    inputs[thread].call_last = end;
    i = end;
  }
  for (size_t i = 0; i < process.host_events.size();) {
    const uint32_t thread = process.host_events[i].thread_id;
    size_t end = i + 1;
    while (end < process.host_events.size() && process.host_events[end].thread_id == thread) ++end;
    inputs[thread].event_first = i;
    inputs[thread].event_last = end;
    i = end;
  }
  for (uint32_t i = 0; i < process.overheads.size(); ++i) {
    const read::Overhead& overhead = process.overheads[i];
    if (overhead.thread_id != 0 && overhead.kind != trace::OVERHEAD_COMMAND_BUFFER_FULL) {
      inputs[overhead.thread_id].overheads.push_back(i);
    }
  }
  for (auto& [thread, input] : inputs) {
    std::sort(input.overheads.begin(), input.overheads.end(), [&](uint32_t a, uint32_t b) {
      const read::Overhead& x = process.overheads[a];
      const read::Overhead& y = process.overheads[b];
      return x.begin_ns != y.begin_ns ? x.begin_ns < y.begin_ns : x.end_ns > y.end_ns;
    });
  }
  return inputs;
}

void fill_segments(const read::Process& process, const CallClasses& classes, const ThreadInputs& in,
                   ThreadTimeline& out) {
  Flattener flattener(out.segments);
  out.segments.reserve(in.call_last - in.call_first);
  size_t c = in.call_first;
  size_t e = in.event_first;
  size_t o = 0;
  const auto call_item = [&](Item& item) {
    for (; c < in.call_last; ++c) {
      const read::Call& call = process.calls[c];
      const auto call_class = static_cast<trace::CallClass>(classes[c]);
      if (call.parent != kNone &&
          !shows_inside_parent(call_class, static_cast<trace::CallClass>(classes[call.parent]))) {
        continue;
      }
      item = {call.begin_ns, call.end_ns, static_cast<uint32_t>(c), Source::kCall,
              rank_of_call(call_class)};
      return true;
    }
    return false;
  };
  const auto event_item = [&](Item& item) {
    for (; e < in.event_last; ++e) {
      const read::HostEvent& event = process.host_events[e];
      const Rank rank = rank_of_event(event);
      if (rank == Rank::kNone || event.end_ns <= event.begin_ns) continue;
      item = {event.begin_ns, event.end_ns, static_cast<uint32_t>(e), Source::kEvent, rank};
      return true;
    }
    return false;
  };
  const auto overhead_item = [&](Item& item) {
    if (o >= in.overheads.size()) return false;
    const read::Overhead& overhead = process.overheads[in.overheads[o]];
    item = {overhead.begin_ns, overhead.end_ns, in.overheads[o], Source::kOverhead, Rank::kClassed};
    return true;
  };
  const auto before = [](const Item& a, const Item& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  };
  // The pin thread and thread workers prepare batches; whoever waits for them is in next().
  const bool works_for_loader = std::any_of(
      process.host_events.begin() + static_cast<ptrdiff_t>(in.event_first),
      process.host_events.begin() + static_cast<ptrdiff_t>(in.event_last),
      [](const read::HostEvent& event) {
        return event.kind == trace::EVENT_PIN_WAIT || event.kind == trace::EVENT_PIN_COPY ||
               event.kind == trace::EVENT_WORKER_LOOP;
      });
  Item items[3];
  bool have[3] = {call_item(items[0]), event_item(items[1]), overhead_item(items[2])};
  while (have[0] || have[1] || have[2]) {
    // Events first at equal bounds: a range encloses the call that fills it.
    int best = have[1] ? 1 : (have[2] ? 2 : 0);
    for (int i : {2, 0}) {
      if (have[i] && i != best && before(items[i], items[best])) best = i;
    }
    const Item& item = items[best];
    if (item.source == Source::kCall) {
      const auto call_class = static_cast<trace::CallClass>(classes[item.ref]);
      if (hands_out_work(call_class) && process.calls[item.ref].parent == kNone) ++out.launches;
      if (call_class != trace::CALL_QUERY && !works_for_loader) out.ran_work = true;
    } else if (item.source == Source::kEvent && !works_for_loader) {
      out.ran_work = true;
    }
    if (item.end_ns > item.begin_ns) flattener.add(item);
    if (best == 0) {
      ++c;
      have[0] = call_item(items[0]);
    } else if (best == 1) {
      ++e;
      have[1] = event_item(items[1]);
    } else {
      ++o;
      have[2] = overhead_item(items[2]);
    }
  }
  flattener.finish();
}

// Same sweep for ranges; category is inherited from the innermost range that has one.
void fill_contexts(const read::Process& process, const ThreadInputs& in, ThreadTimeline& out) {
  struct Open {
    Ns end_ns;
    trace::RangeCategory category;
    uint32_t name;
  };
  std::vector<Open> stack;
  Ns at = INT64_MIN;
  const auto emit_top = [&](Ns end_ns) {
    if (stack.empty() || end_ns <= at) return;
    out.contexts.push_back({at, end_ns, stack.back().category, stack.back().name});
    at = end_ns;
  };
  const auto close_until = [&](Ns time_ns) {
    while (!stack.empty() && stack.back().end_ns <= time_ns) {
      emit_top(stack.back().end_ns);
      stack.pop_back();
    }
  };
  for (size_t i = in.event_first; i < in.event_last; ++i) {
    const read::HostEvent& event = process.host_events[i];
    if (event.kind == trace::EVENT_THREAD_CPU) {
      out.cpu.push_back({event.begin_ns, event.a});
      continue;
    }
    if (!is_context(event) || event.end_ns <= event.begin_ns) continue;
    close_until(event.begin_ns);
    emit_top(event.begin_ns);
    Open open{event.end_ns, trace::RANGE_USER, 0};
    if (!stack.empty()) open = {event.end_ns, stack.back().category, stack.back().name};
    if (names_host_leaf(event.b)) open.category = static_cast<trace::RangeCategory>(event.b);
    if (event.a > 0) open.name = static_cast<uint32_t>(event.a);
    stack.push_back(open);
    at = std::max(at, event.begin_ns);
  }
  close_until(INT64_MAX);
}

// The thread of the training loop: it makes step marks and calls next(); else the
// recorder's word; else whoever launches most.
uint32_t choose_main(const read::Process& process, const ProcessThreads& threads) {
  std::map<uint32_t, uint64_t> votes;
  for (const read::HostEvent& event : process.host_events) {
    if (event.kind == trace::EVENT_STEP || event.kind == trace::EVENT_LOADER_NEXT) {
      ++votes[event.thread_id];
    }
  }
  if (!votes.empty()) {
    const auto best =
        std::max_element(votes.begin(), votes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return threads.index_of(best->first);
  }
  if (process.main_thread != 0) {
    const uint32_t index = threads.index_of(process.main_thread);
    if (index != kNone) return index;
  }
  uint32_t best = kNone;
  for (uint32_t i = 0; i < threads.threads.size(); ++i) {
    if (best == kNone || threads.threads[i].launches > threads.threads[best].launches) best = i;
  }
  return best;
}

}  // namespace

size_t ThreadTimeline::last_before(Ns time_ns) const {
  const auto it = std::partition_point(segments.begin(), segments.end(),
                                       [&](const Segment& s) { return s.begin_ns < time_ns; });
  return it == segments.begin() ? npos : static_cast<size_t>(it - segments.begin()) - 1;
}

const Context* ThreadTimeline::context_at(Ns time_ns) const {
  const auto it = std::partition_point(contexts.begin(), contexts.end(),
                                       [&](const Context& c) { return c.begin_ns <= time_ns; });
  if (it == contexts.begin()) return nullptr;
  const Context& context = *(it - 1);
  return time_ns < context.end_ns ? &context : nullptr;
}

CallClasses effective_classes(const read::Process& process) {
  CallClasses classes(process.calls.size());
  const auto own = [&](size_t i) {
    return process.call_descriptors[process.calls[i].descriptor].call_class;
  };
  for (size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<uint8_t>(own(i));
  const auto says_nothing = [](uint8_t call_class) {
    return call_class == trace::CALL_UNKNOWN || call_class == trace::CALL_OTHER;
  };
  for (size_t i = 0; i < classes.size(); ++i) {
    const uint32_t parent = process.calls[i].parent;
    if (parent == kNone || says_nothing(classes[i])) continue;
    if (says_nothing(classes[parent])) classes[parent] = classes[i];
  }
  return classes;
}

bool hands_out_work(trace::CallClass call_class) {
  switch (call_class) {
    case trace::CALL_LAUNCH:
    case trace::CALL_MEMCPY:
    case trace::CALL_MEMSET:
    case trace::CALL_GRAPH_LAUNCH:
      return true;
    default:
      return false;
  }
}

uint32_t ProcessThreads::index_of(uint32_t thread_id) const {
  const auto it = std::partition_point(threads.begin(), threads.end(), [&](const auto& thread) {
    return thread.thread_id < thread_id;
  });
  if (it == threads.end() || it->thread_id != thread_id) return kNone;
  return static_cast<uint32_t>(it - threads.begin());
}

const ThreadTimeline* ProcessThreads::find(uint32_t thread_id) const {
  const uint32_t index = index_of(thread_id);
  return index == kNone ? nullptr : &threads[index];
}

ProcessThreads build_threads(const read::Process& process, const CallClasses& classes) {
  ProcessThreads result;
  for (const auto& [thread_id, input] : split_by_thread(process)) {
    ThreadTimeline& thread = result.threads.emplace_back();
    thread.thread_id = thread_id;
    fill_segments(process, classes, input, thread);
    fill_contexts(process, input, thread);
  }
  result.main = choose_main(process, result);
  return result;
}

}  // namespace idlescope::model
