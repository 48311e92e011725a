#include "analysis/diagnose/gap_split.h"

#include <algorithm>

#include "analysis/diagnose/autotune.h"
#include "analysis/diagnose/local_replay.h"

namespace idlescope::diagnose {
namespace {

// Disagreement of host and device clocks that the fit may leave.
constexpr Ns kClockError = 30'000;
// Launches that the driver accepts ahead of the device (about 1 k, analysis.md B6).
constexpr Ns kQueueDepth = 1'000;
constexpr Ns kLongestOp = 1'000'000'000;

// Device time of a full queue of launches.
Ns queue_limit(const read::Process& process, const model::DeviceTimeline& device) {
  if (device.ops.empty()) return 0;
  Ns busy = 0;
  for (const uint32_t i : device.ops) {
    busy += std::clamp<Ns>(process.ops[i].end_ns - process.ops[i].begin_ns, 0, kLongestOp);
  }
  return busy / static_cast<Ns>(device.ops.size()) * kQueueDepth;
}

Piece make_piece(Ns begin_ns, Ns end_ns, report::Leaf leaf, Grade grade, uint32_t call = kNone) {
  Piece piece;
  piece.begin_ns = begin_ns;
  piece.end_ns = end_ns;
  piece.leaf = leaf;
  piece.grade = grade;
  piece.call = call;
  return piece;
}

}  // namespace

GapSplit::GapSplit(const model::Model& model, const model::DeviceTimeline& device,
                   const Constants& constants, const CallLeaf& calls)
    : model_(model),
      device_(device),
      process_(model.process_of(device)),
      owner_(model.processes[device.process]),
      constants_(constants),
      calls_(calls),
      chain_(model, device, constants, calls),
      stages_(model.loader),
      skew_ns_(std::max(model.clock.largest_shift_ns, model.recording.grain_ns / 2)),
      autotuning_(find_autotuning(model, device, calls)),
      ahead_(queue_limit(process_, device)) {
  first_call_ns_ = INT64_MAX;
  for (const read::Call& call : process_.calls) {
    first_call_ns_ = std::min(first_call_ns_, call.begin_ns);
  }
  index_unjoined();
  index_other_devices();
}

void GapSplit::index_unjoined() {
  std::vector<uint32_t> next(process_.streams.size() + 1, kNone);
  for (size_t i = device_.ops.size(); i-- > 0;) {
    const uint32_t o = device_.ops[i];
    const read::Op& op = process_.ops[o];
    uint32_t& on_stream = next[std::min<size_t>(process_.op_descriptors[op.descriptor].stream,
                                                process_.streams.size())];
    if (op.call != kNone) {
      on_stream = op.call;
    } else {
      unjoined_.push_back({o, on_stream});
    }
  }
  std::sort(unjoined_.begin(), unjoined_.end());
}

void GapSplit::index_other_devices() {
  for (const model::DeviceTimeline& other : model_.devices) {
    if (&other == &device_ || other.process != device_.process) continue;
    for (const uint32_t i : other.ops) other_ends_.push_back(process_.ops[i].end_ns);
  }
  std::sort(other_ends_.begin(), other_ends_.end());
}

bool GapSplit::other_device_ended(Ns begin_ns, Ns end_ns) const {
  const auto it = std::lower_bound(other_ends_.begin(), other_ends_.end(), begin_ns);
  return it != other_ends_.end() && *it <= end_ns;
}

bool GapSplit::autotunes(Ns begin_ns, Ns end_ns) const {
  const auto it = std::partition_point(autotuning_.begin(), autotuning_.end(),
                                       [&](const auto& s) { return s.end_ns < end_ns; });
  return it != autotuning_.end() && it->begin_ns <= begin_ns;
}

uint32_t GapSplit::launch_of(uint32_t o, bool& inferred) const {
  const read::Op& op = process_.ops[o];
  inferred = false;
  if (op.call != kNone) return op.call;
  const auto it = std::lower_bound(unjoined_.begin(), unjoined_.end(), std::make_pair(o, 0u));
  if (it == unjoined_.end() || it->first != o || it->second == kNone) return kNone;
  inferred = true;
  return it->second;
}

// The op had been queued: it waited for something on a device.
void GapSplit::wait_on_device(Ns begin_ns, Ns end_ns, uint32_t o, uint32_t call, Pieces& out) {
  if (end_ns <= begin_ns) return;
  if (end_ns - begin_ns <= Constants::kLatencyMax) {
    out.push_back(make_piece(begin_ns, end_ns, report::DISPATCH, Grade::kA));
    return;
  }
  if (other_device_ended(end_ns - Constants::kLatencyMax, end_ns + Constants::kLatencyMax)) {
    out.push_back(make_piece(begin_ns, end_ns, report::COMM_UNVERIFIED, Grade::kB));
    return;
  }
  out.push_back(make_piece(begin_ns, end_ns, report::UNKNOWN_DEPENDENCY, Grade::kC));
  if (call != kNone) {
    longest_queue_ =
        std::max(longest_queue_, process_.ops[o].begin_ns - process_.calls[call].end_ns);
  }
}

// A wait that returned just before g0 waited for what ended at g0: the device's clock runs
// that much late. It gets its place in front, with no time of its own.
// Several calls may be one wait: .item() is a copy that waits and a synchronisation.
void GapSplit::add_wait_before(Ns g0) {
  const uint32_t t = host_.front().thread;
  if (t == kNone) return;
  Ns before = g0;
  if (host_.front().kind == HostPiece::Kind::kWaits) {
    if (host_.front().whole_begin_ns + kClockError < g0) return;  // it has its own backlog
    before = std::min(g0, host_.front().whole_begin_ns);
  }
  const model::ThreadTimeline& thread = owner_.threads.threads[t];
  for (size_t i = thread.last_before(before); i != model::ThreadTimeline::npos; --i) {
    const model::Segment& segment = thread.segments[i];
    if (segment.source != model::Source::kCall || segment.end_ns > g0 ||
        segment.end_ns + kClockError < g0 || !calls_.waits(segment.ref)) {
      return;
    }
    HostPiece piece;
    piece.begin_ns = piece.end_ns = g0;
    piece.kind = HostPiece::Kind::kWaits;
    piece.call = segment.ref;
    piece.leaf = calls_.leaf(segment.ref, 0);
    piece.grade = Grade::kC;
    piece.thread = t;
    piece.whole_begin_ns = process_.calls[segment.ref].begin_ns;
    piece.whole_end_ns = process_.calls[segment.ref].end_ns;
    host_.insert(host_.begin(), piece);
    if (i == 0) return;
  }
}

// A library that loads code from memory has made it just before: cuDNN's engines for a new
// shape, NVRTC, Triton. No record covers the making, only the load at its end.
void GapSplit::charge_building(size_t mark, Pieces& out) const {
  constexpr Ns kShortest = 5'000'000;  // shorter host code in front of a load is just that
  for (size_t i = mark + 1; i < out.size(); ++i) {
    const Piece& load = out[i];
    if (load.leaf != report::COMPILE_MODULE || load.call == kNone ||
        calls_.call_class(load.call) != trace::CALL_MODULE_LOAD) {
      continue;
    }
    Piece& before = out[i - 1];
    const bool host = before.leaf == report::HOST_FORWARD || before.leaf == report::HOST_BACKWARD ||
                      before.leaf == report::HOST_PYTHON;
    if (!host || before.end_ns != load.begin_ns || before.length_ns() < kShortest) continue;
    before.leaf = report::COMPILE_MODULE;
    before.grade = std::max(before.grade, Grade::kB);
  }
}

uint32_t GapSplit::split(Ns g0, Ns g1, uint32_t o, uint32_t previous, Pieces& out) {
  if (g1 <= g0) return 0;
  const size_t mark = out.size();
  const Ns dispatch = std::min(constants_.dispatch_ns, g1 - g0);
  const Ns end = g1 - dispatch;
  const read::Op& op = process_.ops[o];
  bool inferred = false;
  const uint32_t call_index = launch_of(o, inferred);
  uint32_t hops = 0;
  const auto finish = [&] {
    charge_building(mark, out);
    if (dispatch > 0) out.push_back(make_piece(end, g1, report::DISPATCH, Grade::kA));
    const bool skewed = skew_ns_ > 0 && g1 - g0 < 2 * skew_ns_;
    const bool tuning = autotunes(g0, g1);
    for (size_t i = mark; i < out.size(); ++i) {
      if (tuning && out[i].leaf != report::DISPATCH) {
        out[i].leaf = report::COMPILE_AUTOTUNE;
        out[i].grade = std::max(out[i].grade, Grade::kB);
      }
      if (inferred) out[i].grade = std::max(out[i].grade, Grade::kB);
      if (skewed) out[i].grade = Grade::kC;
    }
    return hops;
  };
  if (end <= g0) return finish();
  if (call_index == kNone) {
    // Launched before the first call that was recorded: it was queued.
    if (op.begin_ns <= first_call_ns_ && first_call_ns_ != INT64_MAX) {
      wait_on_device(g0, end, o, kNone, out);
    } else {
      out.push_back(make_piece(g0, end, report::UNKNOWN_NOLAUNCH, Grade::kC));
    }
    return finish();
  }
  const read::Call& call = process_.calls[call_index];
  if (previous != kNone && calls_.call_class(call_index) == trace::CALL_GRAPH_LAUNCH &&
      process_.ops[previous].call == call_index) {
    // Between nodes of one graph launch nothing of the host is waited for.
    out.push_back(make_piece(g0, end, report::DISPATCH, Grade::kB));
    return finish();
  }
  if (call.end_ns <= g0) {
    // Well ahead again: what follows is no wait's doing.
    if (g0 - call.end_ns > constants_.burst_ns) ahead_.reset();
    // An op that begins as soon after its launch as on an idle stream was not queued: the
    // launch was under way, or the device's clock runs late.
    if (g1 - call.begin_ns <= constants_.launch_latency_ns * 5 / 4) {
      out.push_back(make_piece(g0, end, report::LAUNCH_LEAF, Grade::kB, call_index));
    } else {
      wait_on_device(g0, end, o, call_index, out);
    }
    return finish();
  }
  const uint32_t thread =
      owner_.threads.index_of(process_.call_descriptors[call.descriptor].thread_id);
  if (thread == kNone) {
    out.push_back(make_piece(g0, end, report::UNKNOWN_NOTHREAD, Grade::kC));
    return finish();
  }
  // The tail after the call inherits its leaf, but not for ever (amendment A1.8).
  const Ns tail_max = std::max<Ns>(10 * constants_.launch_latency_ns, 100'000);
  const Ns call_end = std::min(call.end_ns, end);
  const Ns tail_end = std::min(end, call_end + tail_max);
  hops = chain_.walk(thread, call_end, g0, host_);
  if (tail_end > call_end) {
    HostPiece tail;
    tail.begin_ns = tail.whole_begin_ns = call_end;
    tail.end_ns = tail.whole_end_ns = tail_end;
    tail.leaf = calls_.leaf(call_index, 0);
    if (tail.leaf == report::LEAF_UNSPECIFIED) tail.leaf = report::LAUNCH_LEAF;
    tail.call = call_index;
    tail.thread = thread;
    host_.push_back(tail);
  }
  add_wait_before(g0);
  const HostPiece& first = host_.front();
  const bool straddles = first.kind == HostPiece::Kind::kWaits && first.call != kNone &&
                         first.call != call_index && first.whole_begin_ns < g0 &&
                         g0 - kClockError < first.whole_end_ns;
  // An earlier wait makes launches late one by one. A longer stall is its own cause.
  if (g1 - g0 > constants_.burst_ns) ahead_.reset();
  if (straddles || ahead_.lead_ns() > 0) {
    replay_without(host_, straddles, g0, tail_end, constants_, stages_, ahead_, out);
  } else {
    for (const HostPiece& piece : host_) {
      emit_host_piece(piece, piece.begin_ns, piece.end_ns, stages_, out);
    }
  }
  wait_on_device(tail_end, end, o, call_index, out);
  return finish();
}

}  // namespace idlescope::diagnose
