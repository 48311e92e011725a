#include "analysis/simulate/thread_walk.h"

#include <algorithm>

namespace idlescope::simulate {
namespace {

void add(std::vector<Piece>* out, Ns begin, Ns end, Leaf leaf) {
  if (end <= begin) return;
  Piece piece;
  piece.begin_ns = piece.full_begin_ns = begin;
  piece.end_ns = end;
  piece.leaf = leaf;
  out->push_back(piece);
}

}  // namespace

ThreadWalk::ThreadWalk(const Program& program, const Execution& run)
    : program_(program), run_(run), batch_of_flag_(program.flags, kNone) {
  for (uint32_t i = 0; i < program.batches.size(); ++i) {
    if (program.batches[i].ready_flag != kNone) batch_of_flag_[program.batches[i].ready_flag] = i;
  }
}

uint32_t ThreadWalk::awaited_op(uint32_t thread, uint32_t segment) const {
  const Segment& s = run_.threads[thread][segment];
  const Instruction& in = program_.threads[thread].code[s.instruction];
  if (in.what == Do::kLaunch) return in.arg + in.count - 1;
  uint32_t last = kNone;
  for (uint32_t i = 0; i < in.count; ++i) {
    uint32_t op = program_.targets[in.arg + i];
    if (last == kNone || run_.ops[op].end_ns > run_.ops[last].end_ns) last = op;
  }
  return last;
}

// A worker's own time. Of CPU work that had to share cores the run-queue share is
// contention; it is placed behind the running part.
void ThreadWalk::worker_pieces(uint32_t thread, Ns begin, Ns end, std::vector<Piece>* out) const {
  const std::vector<Segment>& log = run_.threads[thread];
  auto it = std::upper_bound(log.begin(), log.end(), begin,
                             [](Ns t, const Segment& s) { return t < s.end_ns; });
  Ns at = begin;
  for (; it != log.end() && it->begin_ns < end; ++it) {
    if (it->begin_ns > at) add(out, at, it->begin_ns, report::DATA_STARTUP);
    const Instruction& in = program_.threads[thread].code[it->instruction];
    Ns from = std::max(begin, it->begin_ns);
    Ns to = std::min(end, it->end_ns);
    if (in.what == Do::kRun && it->end_ns - it->begin_ns > in.ns + 1 &&
        in.leaf != report::DATA_IPC && in.leaf != report::DATA_STARTUP) {
      Ns ran = it->begin_ns + in.ns;
      add(out, from, std::min(to, ran), in.leaf);
      add(out, std::max(from, ran), to, report::DATA_CONTENDED);
    } else {
      add(out, from, to, in.leaf);
    }
    at = to;
  }
  if (at < end) add(out, at, end, log.empty() ? report::DATA_STARTUP : report::DATA_QUEUED);
}

std::vector<Piece> ThreadWalk::batch_stages(uint32_t batch, Ns begin, Ns end) const {
  const BatchSpec& b = program_.batches[batch];
  std::vector<Piece> out;
  Ns put = run_.flag_ns[b.put_flag];
  Ns sent = run_.flag_ns[b.sent_flag];
  Ns ready = run_.flag_ns[b.ready_flag];
  worker_pieces(b.worker_thread, begin, std::min(end, put), &out);
  add(&out, std::max(begin, put), std::min(end, sent), report::DATA_IPC);
  if (ready > sent) {
    // Unpickling happens in the pin thread, in front of the copy.
    Ns copy_begin = sent;
    const std::vector<Segment>& log = run_.threads[b.pin_thread];
    auto it = std::lower_bound(log.begin(), log.end(), ready,
                               [](const Segment& s, Ns t) { return s.end_ns < t; });
    if (it != log.end())
      copy_begin = std::min(ready, it->begin_ns + program_.pin_items[it->instruction].unpickle_ns);
    bool waited = it != log.end() && it->begin_ns > sent;
    Leaf before = waited ? report::DATA_PIN : report::DATA_IPC;
    add(&out, std::max(begin, sent), std::min(end, copy_begin), before);
    add(&out, std::max(begin, std::max(sent, copy_begin)), std::min(end, ready), report::DATA_PIN);
  }
  add(&out, std::max(begin, ready), end, report::DATA_WAKE);
  return out;
}

// Pieces of one segment, latest first.
void ThreadWalk::segment_pieces(uint32_t thread, uint32_t segment, Ns from, Ns to,
                                std::vector<Piece>* reversed) const {
  const Segment& s = run_.threads[thread][segment];
  const Instruction& in = program_.threads[thread].code[s.instruction];
  Piece piece;
  piece.begin_ns = from;
  piece.end_ns = to;
  piece.leaf = in.leaf;
  piece.thread = thread;
  piece.segment = segment;
  piece.full_begin_ns = s.begin_ns;
  if (in.what == Do::kAwait && batch_of_flag_[in.arg] != kNone) {
    uint32_t batch = batch_of_flag_[in.arg];
    piece.kind = Piece::Kind::kBatch;
    piece.batch = batch;
    piece.ready_ns = run_.flag_ns[program_.batches[batch].ready_flag];
    reversed->push_back(piece);
    return;
  }
  if (in.what == Do::kSync || (in.what == Do::kLaunch && in.blocking)) {
    piece.kind = Piece::Kind::kBlocking;
  }
  if (s.locked_until_ns > s.begin_ns) {
    // The driver lock was held by a thread that allocated.
    Ns until = std::clamp(s.locked_until_ns, from, to);
    Piece after = piece;
    after.begin_ns = until;
    if (after.end_ns > after.begin_ns) reversed->push_back(after);
    piece.end_ns = until;
    piece.leaf = report::ALLOC_LOCK;
    piece.kind = Piece::Kind::kPlain;
    if (piece.end_ns > piece.begin_ns) reversed->push_back(piece);
    return;
  }
  reversed->push_back(piece);
}

std::vector<Piece> ThreadWalk::back(uint32_t thread, Ns cursor, Ns stop) const {
  std::vector<Piece> reversed;
  while (cursor > stop) {
    const std::vector<Segment>& log = run_.threads[thread];
    auto it = std::lower_bound(log.begin(), log.end(), cursor,
                               [](const Segment& s, Ns t) { return s.begin_ns < t; });
    if (it == log.begin()) {
      add(&reversed, stop, cursor, report::STARTUP_LEAF);
      break;
    }
    --it;
    if (it->end_ns < cursor) {  // past the end of the thread's program
      add(&reversed, std::max(stop, it->end_ns), cursor, report::STARTUP_LEAF);
      cursor = std::max(stop, it->end_ns);
      continue;
    }
    const Instruction& in = program_.threads[thread].code[it->instruction];
    if (in.what == Do::kAwait && in.hop) {
      Ns set = run_.flag_ns[in.arg];
      if (set < cursor && set >= it->begin_ns) {
        Ns from = std::max(stop, set);
        add(&reversed, from, cursor, in.leaf);
        cursor = from;
      }
      thread = run_.flag_thread[in.arg];
      continue;
    }
    Ns from = std::max(stop, it->begin_ns);
    segment_pieces(thread, static_cast<uint32_t>(it - log.begin()), from, cursor, &reversed);
    cursor = from;
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

std::vector<Piece> ThreadWalk::launch_chain(uint32_t op, Ns begin, Ns end) const {
  const OpRun& launched = run_.ops[op];
  const Segment& call = run_.threads[launched.thread][launched.segment];
  std::vector<Piece> pieces = back(launched.thread, std::min(call.begin_ns, end), begin);
  Ns from = std::max(begin, call.begin_ns);
  if (from < end) {
    const Instruction& in = program_.threads[launched.thread].code[call.instruction];
    Piece piece;
    if (call.locked_until_ns > from) {
      piece.begin_ns = piece.full_begin_ns = from;
      piece.end_ns = std::min(call.locked_until_ns, end);
      piece.leaf = report::ALLOC_LOCK;
      pieces.push_back(piece);
      from = piece.end_ns;
    }
    piece.begin_ns = from;
    piece.full_begin_ns = from;
    piece.end_ns = end;
    piece.leaf = in.leaf;
    if (from < end) pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace idlescope::simulate
