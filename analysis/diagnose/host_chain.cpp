#include "analysis/diagnose/host_chain.h"

#include <algorithm>
#include <string_view>

namespace idlescope::diagnose {
namespace {

using model::Segment;
using model::Source;
using model::ThreadTimeline;

constexpr Ns kSilence = 200'000;   // a hop leaves only longer silence (amendment A1.7)
constexpr Ns kHandOver = 200'000;  // and lands where work ended at most this long before
constexpr uint32_t kMaxHops = 4;

report::Leaf leaf_of_category(trace::RangeCategory category) {
  switch (category) {
    case trace::RANGE_OPTIMIZER:
    case trace::RANGE_ZERO_GRAD:
      return report::HOST_OPTIMIZER;
    case trace::RANGE_FORWARD:
      return report::HOST_FORWARD;
    case trace::RANGE_BACKWARD:
      return report::HOST_BACKWARD;
    case trace::RANGE_LOGGING:
      return report::HOST_LOGGING;
    case trace::RANGE_EVALUATION:
      return report::HOST_EVALUATION;
    default:
      return report::HOST_PYTHON;
  }
}

}  // namespace

HostChain::HostChain(const model::Model& model, const model::DeviceTimeline& device,
                     const Constants& constants, const CallLeaf& calls)
    : model_(model),
      process_(model.process_of(device)),
      owner_(model.processes[device.process]),
      process_index_(device.process),
      constants_(constants),
      calls_(calls) {
  for (const read::HostEvent& event : process_.host_events) {
    if (event.kind == trace::EVENT_NOTEBOOK_CELL) cells_.push_back({event.begin_ns, event.end_ns});
  }
  std::sort(cells_.begin(), cells_.end(),
            [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
}

bool HostChain::outside_cells(Ns time_ns) const {
  if (cells_.empty()) return false;
  const auto it = std::partition_point(cells_.begin(), cells_.end(),
                                       [&](const auto& cell) { return cell.end_ns <= time_ns; });
  return it == cells_.end() || time_ns < it->begin_ns;
}

bool HostChain::is_launch(const Segment& segment) const {
  return segment.source == Source::kCall && model::hands_out_work(calls_.call_class(segment.ref));
}

// End of the last launch at or before segment `index`, not looking further back than
// `limit_ns`; INT64_MIN: none. What lies between may only be calls without a class of
// their own (event records, queries) or framework ops.
Ns HostChain::launch_before(const ThreadTimeline& thread, size_t index, Ns limit_ns) const {
  for (size_t i = index; i != ThreadTimeline::npos; --i) {
    const Segment& segment = thread.segments[i];
    if (segment.end_ns < limit_ns) return INT64_MIN;
    if (is_launch(segment)) return segment.end_ns;
    const bool neutral =
        !segment.classed || (segment.source == Source::kCall &&
                             calls_.leaf(segment.ref, 0) == report::LEAF_UNSPECIFIED);
    if (!neutral || i == 0) return INT64_MIN;
  }
  return INT64_MIN;
}

report::Leaf HostChain::range_leaf(uint32_t t, Ns time_ns, Grade& grade) const {
  const ThreadTimeline& thread = owner_.threads.threads[t];
  const model::Context* context = thread.context_at(time_ns);
  report::Leaf leaf = report::HOST_PYTHON;
  if (context != nullptr) leaf = leaf_of_category(context->category);
  if (leaf == report::HOST_PYTHON && t != owner_.threads.main && owner_.threads.main != kNone) {
    // Helper threads work for what the main thread is in.
    const model::Context* main = owner_.threads.threads[owner_.threads.main].context_at(time_ns);
    if (main != nullptr) leaf = leaf_of_category(main->category);
    if (leaf == report::HOST_PYTHON) {
      const auto name = process_.thread_names.find(thread.thread_id);
      if (name != process_.thread_names.end() &&
          name->second.find("autograd") != std::string::npos) {
        leaf = report::HOST_BACKWARD;
      }
    }
    grade = std::max(grade, Grade::kB);
  }
  if (context == nullptr) grade = std::max(grade, Grade::kB);
  return leaf;
}

HostPiece HostChain::piece_of(const Segment& segment, uint32_t thread, Ns begin_ns,
                              Ns end_ns) const {
  HostPiece piece;
  piece.begin_ns = begin_ns;
  piece.end_ns = end_ns;
  piece.thread = thread;
  switch (segment.source) {
    case Source::kCall: {
      const read::Call& call = process_.calls[segment.ref];
      piece.call = segment.ref;
      piece.whole_begin_ns = call.begin_ns;
      piece.whole_end_ns = call.end_ns;
      piece.leaf = calls_.leaf(segment.ref, end_ns - begin_ns);
      if (calls_.waits(segment.ref)) piece.kind = HostPiece::Kind::kWaits;
      if (piece.leaf == report::COMPILE_MODULE &&
          calls_.call_class(segment.ref) != trace::CALL_MODULE_LOAD) {
        piece.grade = Grade::kB;
      }
      break;
    }
    case Source::kEvent: {
      const read::HostEvent& event = process_.host_events[segment.ref];
      piece.event = segment.ref;
      piece.whole_begin_ns = event.begin_ns;
      piece.whole_end_ns = event.end_ns;
      piece.leaf = calls_.leaf(event);
      if (event.kind == trace::EVENT_LOADER_NEXT) {
        piece.batch = model_.loader.batch_of(process_index_, segment.ref);
        piece.leaf = report::DATA_FETCH;
        if (piece.batch != kNone) piece.kind = HostPiece::Kind::kData;
      }
      break;
    }
    case Source::kOverhead:
      piece.whole_begin_ns = process_.overheads[segment.ref].begin_ns;
      piece.whole_end_ns = process_.overheads[segment.ref].end_ns;
      piece.leaf = calls_.leaf(process_.overheads[segment.ref]);
      break;
  }
  return piece;
}

// Share of [begin, end) in which the thread ran; −1: unknown. The thread's CPU clock is read
// at API entry after silence. What it was off the CPU between the samples around the stretch,
// less the calls in which it waited, belongs to the silent stretches between them alike.
double HostChain::cpu_share(const ThreadTimeline& thread, Ns begin_ns, Ns end_ns) const {
  constexpr Ns kReadLate = 5'000;  // a sample lies this close to the end of the stretch
  const auto& samples = thread.cpu;
  const auto after = std::partition_point(samples.begin(), samples.end(), [&](const auto& s) {
    return s.time_ns < end_ns - kReadLate;
  });
  if (after == samples.begin() || after == samples.end()) return -1;
  auto before = after - 1;
  while (before != samples.begin() && before->time_ns > begin_ns + kReadLate) --before;
  const Ns length = end_ns - begin_ns;
  const Ns wall = after->time_ns - before->time_ns;
  if (before->time_ns > begin_ns + kReadLate || wall > 100 * length) return -1;
  Ns off = wall - (after->cpu_ns - before->cpu_ns);
  Ns silent = wall;
  size_t i = thread.last_before(before->time_ns);
  if (i == ThreadTimeline::npos) i = 0;
  for (; i < thread.segments.size() && thread.segments[i].begin_ns < after->time_ns; ++i) {
    const Segment& segment = thread.segments[i];
    const Ns inside =
        std::min(segment.end_ns, after->time_ns) - std::max(segment.begin_ns, before->time_ns);
    if (inside <= 0) continue;
    silent -= inside;
    const bool waits = segment.source == Source::kCall
                           ? calls_.waits(segment.ref)
                           : segment.source == Source::kEvent &&
                                 process_.host_events[segment.ref].kind == trace::EVENT_LOADER_NEXT;
    if (waits) off -= inside;
  }
  if (silent <= 0) return -1;
  return 1.0 - std::clamp(static_cast<double>(off) / static_cast<double>(silent), 0.0, 1.0);
}

// Host time that no classed record covers.
void HostChain::add_silent(uint32_t t, Ns begin_ns, Ns end_ns, bool in_burst, bool hopped,
                           std::vector<HostPiece>& out) const {
  HostPiece piece;
  piece.begin_ns = piece.whole_begin_ns = begin_ns;
  piece.end_ns = piece.whole_end_ns = end_ns;
  piece.thread = t;
  const Ns middle = begin_ns + (end_ns - begin_ns) / 2;
  if (in_burst) {
    piece.leaf = report::LAUNCH_LEAF;
  } else if (outside_cells(middle)) {
    piece.leaf = report::NOTEBOOK_IDLE;
  } else {
    piece.leaf = range_leaf(t, middle, piece.grade);
    if (end_ns - begin_ns > kSilence) {
      const double share = cpu_share(owner_.threads.threads[t], begin_ns, end_ns);
      if (share >= 0 && share < 0.5) {
        piece.leaf = report::HOST_BLOCKED;
        piece.grade = Grade::kA;
      }
    }
  }
  if (hopped) piece.grade = std::max(piece.grade, Grade::kB);
  out.push_back(piece);
}

// The other thread whose work ended last before `at_ns`, and close enough to have handed
// over; kNone: nobody.
uint32_t HostChain::hop_from(uint32_t from, Ns silent_begin_ns, Ns at_ns) const {
  uint32_t best = kNone;
  // A thread that was off the CPU waited for whoever ran meanwhile, however long ago that
  // one did something that is recorded (B2).
  Ns best_end = at_ns - kHandOver;
  if (silent_begin_ns != INT64_MIN && silent_begin_ns < best_end) {
    const double share = cpu_share(owner_.threads.threads[from], silent_begin_ns, at_ns);
    if (share >= 0 && share < 0.5) best_end = silent_begin_ns;
  }
  best_end = std::max(silent_begin_ns, best_end);
  for (uint32_t t = 0; t < owner_.threads.threads.size(); ++t) {
    const ThreadTimeline& thread = owner_.threads.threads[t];
    if (t == from || !thread.ran_work) continue;
    const size_t last = thread.last_before(at_ns);
    if (last == ThreadTimeline::npos) continue;
    const Ns end = std::min(thread.segments[last].end_ns, at_ns);
    if (end > best_end) {
      best = t;
      best_end = end;
    }
  }
  return best;
}

// The main thread slept, in no part of the step, and then had something to send to the device:
// it waited for a batch of a loader that is no DataLoader (a queue filled by a thread). Where a
// DataLoader is seen, its batch had come already: then the thread wanted a core or a lock.
bool HostChain::slept_for_input(const HostPiece& piece, uint32_t next_call) const {
  if (piece.leaf != report::HOST_BLOCKED || piece.thread != owner_.threads.main) return false;
  if (next_call == kNone || !calls_.sends_input(next_call)) return false;
  for (const model::Iterator& iterator : model_.loader.iterators) {
    if (iterator.process == process_index_) return false;
  }
  const model::Context* context = owner_.threads.threads[piece.thread].context_at(
      piece.begin_ns + (piece.end_ns - piece.begin_ns) / 2);
  if (context == nullptr) return true;
  return leaf_of_category(context->category) == report::HOST_PYTHON &&
         model_.recording.strings[context->name].find("sleep") == std::string_view::npos;
}

bool HostChain::between_copies(uint32_t next_call) const {
  return next_call != kNone && calls_.follows_small_copy(next_call);
}

uint32_t HostChain::walk(uint32_t t, Ns from_ns, Ns stop_ns, std::vector<HostPiece>& out) const {
  out.clear();
  uint32_t hops = 0;
  Ns at = from_ns;
  Ns next_launch = from_ns;  // begin of the launch after `at` on this thread
  bool launch_follows = true;
  uint32_t next_call = kNone;  // the launch after `at` on this thread
  size_t index = owner_.threads.threads[t].last_before(at);
  while (at > stop_ns) {
    const ThreadTimeline& thread = owner_.threads.threads[t];
    const Segment* segment = index == ThreadTimeline::npos ? nullptr : &thread.segments[index];
    if (segment != nullptr && segment->end_ns >= at) {
      const Ns begin = std::max(stop_ns, segment->begin_ns);
      HostPiece piece = piece_of(*segment, t, begin, at);
      if (is_launch(*segment)) {
        next_launch = segment->begin_ns;
        launch_follows = true;
        next_call = segment->ref;
      }
      if (piece.leaf == report::LEAF_UNSPECIFIED) {
        // Activity that names nothing: in a burst it is part of launching.
        const Ns before = launch_follows
                              ? launch_before(thread, index, next_launch - constants_.burst_ns)
                              : INT64_MIN;
        const bool in_burst = before != INT64_MIN && next_launch - before < constants_.burst_ns;
        const size_t mark = out.size();
        add_silent(t, begin, at, in_burst, hops > 0, out);
        if (between_copies(next_call)) out[mark].leaf = calls_.leaf(next_call, 0);
        out[mark].call = piece.call;
        out[mark].event = piece.event;
      } else {
        if (hops > 0) piece.grade = std::max(piece.grade, Grade::kB);
        out.push_back(piece);
        if (!is_launch(*segment)) launch_follows = false;
      }
      at = begin;
      index = index == 0 ? ThreadTimeline::npos : index - 1;
      continue;
    }
    // Silent back to the segment before, or for ever.
    const Ns silent_begin = segment != nullptr ? segment->end_ns : INT64_MIN;
    const Ns begin = std::max(stop_ns, silent_begin);
    bool in_burst = false;
    if (launch_follows && segment != nullptr) {
      const Ns before = launch_before(thread, index, next_launch - constants_.burst_ns);
      in_burst = before != INT64_MIN && next_launch - before < constants_.burst_ns;
    }
    const bool long_silence = silent_begin == INT64_MIN || at - silent_begin > kSilence;
    if (!in_burst && long_silence) {
      const uint32_t other = hop_from(t, silent_begin, at);
      if (other != kNone && hops < kMaxHops) {
        ++hops;
        t = other;
        launch_follows = false;
        next_call = kNone;
        const ThreadTimeline& target = owner_.threads.threads[t];
        index = target.last_before(at);
        // Land on what it did last; the moment between is the hand-over.
        const Ns end = std::min(at, target.segments[index].end_ns);
        if (end < at) {
          const Ns from = std::max(stop_ns, end);
          add_silent(t, from, at, false, true, out);
          at = from;
        }
        continue;
      }
      if (other != kNone) {
        HostPiece piece;
        piece.begin_ns = piece.whole_begin_ns = stop_ns;
        piece.end_ns = piece.whole_end_ns = at;
        piece.leaf = report::UNKNOWN_NOTHREAD;
        piece.grade = Grade::kC;
        piece.thread = t;
        out.push_back(piece);
        at = stop_ns;
        break;
      }
    }
    add_silent(t, begin, at, in_burst, hops > 0, out);
    if (between_copies(next_call)) out.back().leaf = calls_.leaf(next_call, 0);
    if (launch_follows && slept_for_input(out.back(), next_call)) {
      out.back().leaf = report::DATA_UNSEEN;
      out.back().grade = Grade::kC;
    }
    at = begin;
  }
  std::reverse(out.begin(), out.end());
  return hops;
}

}  // namespace idlescope::diagnose
