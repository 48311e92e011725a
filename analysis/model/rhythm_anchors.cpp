#include "analysis/model/rhythm_anchors.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "analysis/model/steady_part.h"

namespace idlescope::model {
namespace {

constexpr size_t kPeriods = 4;      // seen at least
constexpr double kAgreement = 0.9;  // of the sequence with itself one period later
constexpr size_t kLongest = 4096;   // collectives in a period
constexpr size_t kBins = 8192;
constexpr size_t kShortestBins = 16;  // of a period
constexpr double kCorrelation = 0.5;
constexpr double kNearBest = 0.05;
constexpr double kPower = 3;   // times the mean of the periodogram
constexpr double kSnap = 0.2;  // of a period: how far a step's begin may be from where it is due

// A collective in its place: what it is, and how much was launched since the one before.
struct Beat {
  size_t at;  // launch order
  size_t gap;
  uint32_t token;
};

// Steps vary: a few kernels more or less between two collectives are the same place.
bool alike(const Beat& a, const Beat& b) {
  const size_t larger = std::max(a.gap, b.gap);
  return a.token == b.token && 4 * (larger - std::min(a.gap, b.gap)) <= larger + 8;
}

std::vector<Beat> beats_of(const std::vector<Launched>& order) {
  std::vector<Beat> beats;
  size_t before = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!order[i].comm) continue;
    const size_t gap = i - before;
    beats.push_back({i, gap, order[i].token});
    before = i;
  }
  if (!beats.empty()) beats.erase(beats.begin());  // what came before it is unknown
  return beats;
}

size_t mismatches(const std::vector<Beat>& beats, size_t lag) {
  size_t n = 0;
  for (size_t i = lag; i < beats.size(); ++i) n += alike(beats[i], beats[i - lag]) ? 0 : 1;
  return n;
}

// Busy share of each bin of the window with most ops, less the mean.
struct Signal {
  std::vector<double> bins;
  double bin_ns = 0;
  size_t first = 0;  // DeviceTimeline::ops
  size_t last = 0;
};

Signal busy_signal(const read::Process& process, const DeviceTimeline& device) {
  Signal signal;
  for (const WindowSpan& window : device.windows) {
    if (window.last - window.first > signal.last - signal.first) {
      signal.first = window.first;
      signal.last = window.last;
    }
  }
  if (signal.last - signal.first < kBins / 64) return signal;
  const auto op = [&](size_t i) -> const read::Op& { return process.ops[device.ops[i]]; };
  const Ns begin = op(signal.first).begin_ns;
  Ns end = begin;
  for (size_t i = signal.first; i < signal.last; ++i) end = std::max(end, op(i).end_ns);
  signal.bin_ns = static_cast<double>(end - begin) / kBins;
  if (signal.bin_ns < 1) return signal;
  signal.bins.assign(kBins, 0);
  Ns busy_until = begin;
  for (size_t i = signal.first; i < signal.last; ++i) {
    const double from =
        static_cast<double>(std::max(op(i).begin_ns, busy_until) - begin) / signal.bin_ns;
    const double to = static_cast<double>(op(i).end_ns - begin) / signal.bin_ns;
    busy_until = std::max(busy_until, op(i).end_ns);
    for (auto b = static_cast<size_t>(from); b < kBins && static_cast<double>(b) < to; ++b) {
      const double low = std::max(from, static_cast<double>(b));
      const double high = std::min(to, static_cast<double>(b + 1));
      signal.bins[b] += std::max(0.0, high - low);
    }
  }
  double mean = 0;
  for (const double value : signal.bins) mean += value / kBins;
  for (double& value : signal.bins) value -= mean;
  return signal;
}

// At lags from 0 to a quarter of the signal, 1 at lag 0.
std::vector<double> autocorrelation(const std::vector<double>& x) {
  std::vector<double> out(x.size() / kPeriods);
  double power = 0;
  for (const double value : x) power += value * value;
  if (power <= 0) return {};
  for (size_t lag = 0; lag < out.size(); ++lag) {
    double sum = 0;
    for (size_t i = lag; i < x.size(); ++i) sum += x[i] * x[i - lag];
    // Fewer products at longer lags.
    out[lag] = sum / power * static_cast<double>(x.size()) / static_cast<double>(x.size() - lag);
  }
  return out;
}

double power_at(const std::vector<double>& x, double cycles) {
  double re = 0;
  double im = 0;
  const double step = 2 * std::numbers::pi * cycles / static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    re += x[i] * std::cos(step * static_cast<double>(i));
    im += x[i] * std::sin(step * static_cast<double>(i));
  }
  return (re * re + im * im) / static_cast<double>(x.size());
}

// The fundamental or one of its first harmonics stands out of the periodogram.
bool stands_out(const std::vector<double>& x, size_t lag) {
  double mean = 0;  // of the periodogram: the variance of the signal
  for (const double value : x) mean += value * value / static_cast<double>(x.size());
  const double cycles = static_cast<double>(x.size()) / static_cast<double>(lag);
  for (const double harmonic : {1.0, 2.0, 3.0}) {
    if (power_at(x, harmonic * cycles) >= kPower * mean) return true;
  }
  return false;
}

size_t best_lag(const std::vector<double>& acf, double* strength) {
  std::vector<size_t> peaks;
  double most = 0;
  for (size_t lag = kShortestBins; lag + 1 < acf.size(); ++lag) {
    if (acf[lag] < acf[lag - 1] || acf[lag] < acf[lag + 1]) continue;
    peaks.push_back(lag);
    most = std::max(most, acf[lag]);
  }
  *strength = most;
  if (most < kCorrelation) return 0;
  for (const size_t lag : peaks) {
    if (acf[lag] >= most - kNearBest) return lag;
  }
  return 0;
}

}  // namespace

Rhythm collective_rhythm(const std::vector<Launched>& order) {
  Rhythm out;
  const std::vector<Beat> beats = beats_of(order);
  const size_t n = beats.size();
  if (n < kPeriods) return out;
  size_t best = 0;
  double fewest = 1;
  const size_t longest = std::min(kLongest, n / kPeriods);
  std::vector<size_t> off(longest + 1, 0);
  for (size_t lag = 1; lag <= longest; ++lag) {
    off[lag] = mismatches(beats, lag);
    const double share = static_cast<double>(off[lag]) / static_cast<double>(n - lag);
    if (share < fewest - 1e-9) {
      fewest = share;
      best = lag;
    }
  }
  if (best == 0 || 1 - fewest < kAgreement) return out;
  // A lag inside the period misses at least once in each.
  const size_t once = n / best;
  size_t lag = best;
  for (size_t l = 1; l < best; ++l) {
    if (4 * off[l] <= 4 * off[best] + once) {
      lag = l;
      break;
    }
  }
  out.strength = 1 - static_cast<double>(off[lag]) / static_cast<double>(n - lag);

  std::vector<int64_t> typical(lag);  // gap of each place in the period
  for (size_t place = 0; place < lag; ++place) {
    std::vector<int64_t> gaps;
    for (size_t i = place; i < n; i += lag) gaps.push_back(static_cast<int64_t>(beats[i].gap));
    typical[place] = median(std::move(gaps));
  }
  const auto top = std::max_element(typical.begin(), typical.end());
  const int64_t largest = *top;
  const auto place = static_cast<size_t>(top - typical.begin());
  std::sort(typical.rbegin(), typical.rend());
  out.pronounced = lag > 1 && largest >= 2 * typical[1];
  for (size_t i = 0; i < n; ++i) {
    // By the gap where it tells: a collective more or less shifts all places after it.
    const bool begins = out.pronounced ? static_cast<int64_t>(beats[i].gap) > largest / 2 &&
                                             static_cast<int64_t>(beats[i].gap) > typical[1]
                                       : i % lag == place;
    if (begins) out.starts.push_back(beats[i].at);
  }
  return out;
}

Rhythm busy_rhythm(const read::Process& process, const DeviceTimeline& device) {
  Rhythm out;
  const Signal signal = busy_signal(process, device);
  if (signal.bins.empty()) return out;
  const std::vector<double> acf = autocorrelation(signal.bins);
  if (acf.empty()) return out;
  const size_t lag = best_lag(acf, &out.strength);
  if (lag == 0 || !stands_out(signal.bins, lag)) return out;
  const double period = static_cast<double>(lag) * signal.bin_ns;

  // Begins of ops after idle time, the longest of those near where the next step is due.
  std::vector<std::pair<Ns, size_t>> idle_before;  // begin, op
  std::vector<Ns> idle;
  Ns busy_until = INT64_MIN;
  for (size_t i = signal.first; i < signal.last; ++i) {
    const read::Op& op = process.ops[device.ops[i]];
    if (op.begin_ns > busy_until) {
      idle_before.push_back({op.begin_ns, i});
      idle.push_back(busy_until == INT64_MIN ? 0 : op.begin_ns - busy_until);
    }
    busy_until = std::max(busy_until, op.end_ns);
  }
  const auto longest_in = [&](double from, double to) {
    const auto at = [&](double time) {
      return static_cast<size_t>(
          std::lower_bound(idle_before.begin(), idle_before.end(),
                           std::make_pair(static_cast<Ns>(time), size_t{0})) -
          idle_before.begin());
    };
    const size_t first = at(from);
    const size_t last = std::min(at(to), idle_before.size());
    if (first >= last) return SIZE_MAX;
    return static_cast<size_t>(std::max_element(idle.begin() + static_cast<ptrdiff_t>(first),
                                                idle.begin() + static_cast<ptrdiff_t>(last)) -
                               idle.begin());
  };
  const double begin = static_cast<double>(idle_before.front().first);
  const double end = static_cast<double>(idle_before.back().first) + period;
  size_t at = longest_in(begin + 1, begin + period + 1);
  if (at == SIZE_MAX) return out;
  double due = static_cast<double>(idle_before[at].first);
  while (true) {
    if (at != SIZE_MAX) {
      out.starts.push_back(idle_before[at].second);
      due = static_cast<double>(idle_before[at].first);
    }
    due += period;
    if (due > end) break;
    at = longest_in(due - kSnap * period, due + kSnap * period);
  }
  if (out.starts.size() < kPeriods) out.starts.clear();
  return out;
}

}  // namespace idlescope::model
