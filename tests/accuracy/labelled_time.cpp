#include "tests/accuracy/labelled_time.h"

#include <algorithm>

#include "proto/report.pb.h"

namespace idlescope::accuracy {
namespace {

using Amounts = std::array<double, kClasses>;

constexpr int64_t kLongGapNs = 200'000;  // true gaps that are a cell of their own …
constexpr int64_t kSlackNs = 30'000;     // … widened by the largest clock error

struct Cell {
  int64_t begin_ns;
  int64_t end_ns;
  Amounts truth{};
  Amounts predicted{};
};

// Gaps: neighbouring stretches that touch.
std::vector<Cell> cells_of(const std::vector<Stretch>& truth, int64_t begin_ns, int64_t end_ns) {
  std::vector<Cell> cells;
  int64_t from = -1;
  int64_t to = -1;
  auto close = [&] {
    if (from >= 0 && to - from >= kLongGapNs) {
      int64_t a = std::max(begin_ns, from - kSlackNs);
      int64_t b = std::min(end_ns, to + kSlackNs);
      if (!cells.empty()) a = std::max(a, cells.back().end_ns);
      if (a < b) cells.push_back({a, b, {}, {}});
    }
  };
  for (const Stretch& s : truth) {
    if (s.end_ns <= begin_ns || s.begin_ns >= end_ns || s.label == Class::kBusy) continue;
    if (s.begin_ns != to) {
      close();
      from = std::max(s.begin_ns, begin_ns);
    }
    to = s.end_ns;
  }
  close();
  return cells;
}

void spread(const std::vector<Stretch>& stretches, int64_t begin_ns, int64_t end_ns,
            std::vector<Cell>* cells, Cell* rest, bool truth) {
  auto first = std::lower_bound(stretches.begin(), stretches.end(), begin_ns,
                                [](const Stretch& s, int64_t t) { return s.end_ns <= t; });
  for (auto it = first; it != stretches.end() && it->begin_ns < end_ns; ++it) {
    if (it->label == Class::kBusy) continue;
    int64_t a = std::max(it->begin_ns, begin_ns);
    int64_t b = std::min(it->end_ns, end_ns);
    auto left = static_cast<double>(b - a);
    for (Cell& cell : *cells) {
      int64_t part = std::min(b, cell.end_ns) - std::max(a, cell.begin_ns);
      if (part <= 0) continue;
      (truth ? cell.truth : cell.predicted)[static_cast<size_t>(it->label)] +=
          static_cast<double>(part);
      left -= static_cast<double>(part);
    }
    (truth ? rest->truth : rest->predicted)[static_cast<size_t>(it->label)] += left;
  }
}

// Equal classes match first; what is left over is matched in proportion.
void match(Cell* cell, Confusion* confusion) {
  Amounts& t = cell->truth;
  Amounts& p = cell->predicted;
  double truth_sum = 0;
  double predicted_sum = 0;
  for (size_t c = 0; c < kClasses; ++c) {
    truth_sum += t[c];
    predicted_sum += p[c];
  }
  t[static_cast<size_t>(Class::kBusy)] += std::max(0.0, predicted_sum - truth_sum);
  p[static_cast<size_t>(Class::kBusy)] += std::max(0.0, truth_sum - predicted_sum);
  double left = 0;
  for (size_t c = 0; c < kClasses; ++c) {
    double same = std::min(t[c], p[c]);
    (*confusion)[c][c] += same;
    t[c] -= same;
    p[c] -= same;
    left += p[c];
  }
  if (left <= 0) return;
  for (size_t a = 0; a < kClasses; ++a) {
    for (size_t b = 0; b < kClasses; ++b) (*confusion)[a][b] += t[a] * p[b] / left;
  }
}

}  // namespace

const char* class_name(Class c) {
  constexpr std::array<const char*, kClasses> kNames = {
      "COMPILE", "ALLOC", "CKPT",         "DATA",     "XFER",    "SYNC",  "COMM",
      "LAUNCH",  "HOST",  "HOST_BLOCKED", "DISPATCH", "UNKNOWN", "OTHER", "BUSY"};
  return kNames[static_cast<size_t>(c)];
}

Class class_of(report::Leaf leaf) {
  using namespace report;  // NOLINT: the enumerators of one proto enum
  if (leaf == BUSY_COMPUTE || leaf == BUSY_MEM) return Class::kBusy;
  if (leaf == BUSY_COPY_EXPOSED || (leaf >= XFER_PAGEABLE && leaf <= XFER_OTHER))
    return Class::kTransfer;
  if (leaf == BUSY_COMM_EXPOSED || (leaf >= COMM_TRANSFER && leaf <= COMM_UNVERIFIED))
    return Class::kComm;
  if (leaf >= COMPILE_MODULE && leaf <= COMPILE_CAPTURE) return Class::kCompile;
  if (leaf >= ALLOC_DEVICE && leaf <= ALLOC_LOCK) return Class::kAlloc;
  if (leaf == CKPT) return Class::kCheckpoint;
  if (leaf >= DATA_STARTUP && leaf <= DATA_UNSEEN) return Class::kData;
  if (leaf >= SYNC_SCALAR && leaf <= SYNC_IMPLICIT) return Class::kSync;
  if (leaf == LAUNCH_LEAF) return Class::kLaunch;
  if (leaf == DISPATCH) return Class::kDispatch;
  if (leaf == HOST_BLOCKED) return Class::kHostBlocked;
  if (leaf >= HOST_OPTIMIZER && leaf <= HOST_EVALUATION) return Class::kHost;
  if (leaf >= UNKNOWN_NOLAUNCH && leaf <= UNKNOWN_LOST) return Class::kUnknown;
  return Class::kOther;
}

void compare(const std::vector<Stretch>& truth, const std::vector<Stretch>& predicted,
             int64_t begin_ns, int64_t end_ns, Confusion* confusion) {
  auto first = std::lower_bound(truth.begin(), truth.end(), begin_ns,
                                [](const Stretch& s, int64_t t) { return s.end_ns <= t; });
  auto last = std::lower_bound(first, truth.end(), end_ns,
                               [](const Stretch& s, int64_t t) { return s.begin_ns < t; });
  std::vector<Stretch> mine(first, last);
  std::vector<Cell> cells = cells_of(mine, begin_ns, end_ns);
  Cell rest{begin_ns, end_ns, {}, {}};
  spread(mine, begin_ns, end_ns, &cells, &rest, true);
  spread(predicted, begin_ns, end_ns, &cells, &rest, false);
  for (Cell& cell : cells) match(&cell, confusion);
  match(&rest, confusion);
}

}  // namespace idlescope::accuracy
