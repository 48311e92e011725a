#include "analysis/diagnose/ranks.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analysis/model/steady_part.h"

namespace idlescope::diagnose {
namespace {

using Key = std::tuple<uint64_t, uint64_t>;  // communicator, sequence

struct Arrival {
  size_t rank;  // index into the list of ranks
  Ns begin_ns;
  Ns end_ns;
};

// Communication ops of one device.
struct Collectives {
  std::map<Key, read::Op> by_key;
  std::vector<read::Op> unnamed;  // in order of their start; nothing numbers them
};

Collectives collectives_of(const model::Model& model, const model::DeviceTimeline& device) {
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  std::unordered_map<uint64_t, Key> named;  // (window, correlation) of the launching call
  for (const read::Collective& collective : process.collectives) {
    if (collective.correlation == 0) continue;
    named[uint64_t{collective.window} << 32 | collective.correlation] = {collective.communicator,
                                                                         collective.sequence};
  }
  Collectives out;
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
    if (owner.work[op.descriptor] != model::Work::kComm || descriptor.kind != trace::OP_KERNEL) {
      continue;
    }
    const auto it = named.find(uint64_t{op.window} << 32 | op.correlation);
    if (it != named.end()) {
      out.by_key[it->second] = op;
    } else if (named.empty()) {
      out.unnamed.push_back(op);
    }
  }
  return out;
}

// By how many collectives the recording of `other` begins later than that of `first`. Windows
// of two ranks open at different steps, so the n-th of one is not the n-th of the other; but a
// collective ends on all ranks at about the same time.
int64_t offset_between(const std::vector<read::Op>& first, const std::vector<read::Op>& other) {
  if (first.empty() || other.empty()) return 0;
  constexpr size_t kTried = 16;
  const size_t stride = std::max<size_t>(1, other.size() / kTried);
  std::vector<int64_t> candidates;
  for (size_t i = 0; i < other.size(); i += stride) {
    const auto after = std::partition_point(first.begin(), first.end(), [&](const read::Op& op) {
      return op.end_ns < other[i].end_ns;
    });
    const int64_t at = after - first.begin();
    candidates.push_back(at - static_cast<int64_t>(i));
    candidates.push_back(at - 1 - static_cast<int64_t>(i));
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  int64_t best = 0;
  Ns least = INT64_MAX;
  for (const int64_t candidate : candidates) {
    std::vector<int64_t> apart;
    for (size_t i = 0; i < other.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) + candidate;
      if (at < 0 || at >= static_cast<int64_t>(first.size())) continue;
      apart.push_back(std::abs(first[at].end_ns - other[i].end_ns));
    }
    if (2 * apart.size() < std::min(first.size(), other.size())) continue;
    const Ns middle = model::median(std::move(apart));
    if (middle < least) {
      least = middle;
      best = candidate;
    }
  }
  return best;
}

// Why the last rank of a step was late (B5): by leaf, what it spent more in that step than the
// mean of the ranks that waited for it, scaled to what each of them waited.
class Guilt {
 public:
  explicit Guilt(const std::vector<DevicePass*>& ranks) : ranks_(ranks), by_leaf_(ranks.size()) {}

  // `spans`: the step of each rank; `wait_ns`: of each other rank for `last`, the mean.
  void add(size_t last, const std::vector<size_t>& spans, Ns wait_ns) {
    std::array<double, kLeafCount> more{};
    double sum = 0;
    for (size_t l = 0; l < kLeafCount; ++l) {
      const report::Verdict verdict = verdict_of(kLeaves[l]);
      if (verdict == report::COMM || kLeaves[l] == report::PROFILER) continue;
      double others = 0;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        if (r != last) others += static_cast<double>(ranks_[r]->ledger->row(spans[r])[l]);
      }
      others /= std::max<double>(1, static_cast<double>(ranks_.size() - 1));
      more[l] = static_cast<double>(ranks_[last]->ledger->row(spans[last])[l]) - others;
      if (more[l] > 0) sum += more[l];
    }
    if (sum <= 0) return;
    for (size_t l = 0; l < kLeafCount; ++l) {
      if (more[l] > 0) by_leaf_[last][l] += more[l] / sum * static_cast<double>(wait_ns);
    }
  }

  void write(RankDiagnosis& out, size_t rank) const {
    const double steps = std::max<double>(1, static_cast<double>(ranks_[rank]->spans.size()));
    for (size_t l = 0; l < kLeafCount; ++l) {
      const double ns = by_leaf_[rank][l] / steps;
      if (ns <= out.guilty_ns) continue;
      out.guilty_ns = ns;
      out.guilty_leaf = kLeaves[l];
    }
  }

 private:
  const std::vector<DevicePass*>& ranks_;
  std::vector<std::array<double, kLeafCount>> by_leaf_;
};

// Splits exposed communication of each span by the rank's share of waiting.
void split_ledger(DevicePass& pass, double wait_share) {
  for (size_t s = 0; s < pass.ledger->spans(); ++s) {
    const Ns exposed = pass.ledger->row(s)[leaf_index(report::BUSY_COMM_EXPOSED)];
    if (exposed <= 0) continue;
    const Ns waiting = static_cast<Ns>(static_cast<double>(exposed) * wait_share);
    pass.ledger->move(s, report::BUSY_COMM_EXPOSED, report::COMM_STRAGGLER, waiting, Grade::kB);
    pass.ledger->move(s, report::BUSY_COMM_EXPOSED, report::COMM_TRANSFER, exposed - waiting,
                      Grade::kB);
  }
}

// One rank of several: its exposed communication is transfer or waiting, nobody can tell.
void leave_unverified(const model::Model& model, std::vector<DevicePass*>& passes) {
  for (DevicePass* pass : passes) {
    const read::Process& process = model.process_of(model.devices[pass->device]);
    if (process.header.process().world_size() < 2) continue;
    for (size_t s = 0; s < pass->ledger->spans(); ++s) {
      const Ns exposed = pass->ledger->row(s)[leaf_index(report::BUSY_COMM_EXPOSED)];
      if (exposed <= 0) continue;
      pass->ledger->move(s, report::BUSY_COMM_EXPOSED, report::COMM_UNVERIFIED, exposed, Grade::kC);
    }
  }
}

}  // namespace

std::vector<RankDiagnosis> match_ranks(const model::Model& model,
                                       std::vector<DevicePass*>& passes) {
  std::vector<RankDiagnosis> out;
  std::vector<DevicePass*> ranks;
  for (DevicePass* pass : passes) {
    const read::Process& process = model.process_of(model.devices[pass->device]);
    if (!process.header.process().has_rank()) continue;
    RankDiagnosis rank;
    rank.rank = process.header.process().rank();
    rank.process = model.devices[pass->device].process;
    out.push_back(rank);
    ranks.push_back(pass);
  }
  if (ranks.size() < 2) {
    leave_unverified(model, passes);
    return {};
  }

  std::map<Key, std::vector<Arrival>> matched;
  std::vector<read::Op> first_unnamed;
  for (size_t r = 0; r < ranks.size(); ++r) {
    Collectives found = collectives_of(model, model.devices[ranks[r]->device]);
    for (const auto& [key, op] : found.by_key) matched[key].push_back({r, op.begin_ns, op.end_ns});
    if (first_unnamed.empty()) first_unnamed = found.unnamed;
    const int64_t offset = offset_between(first_unnamed, found.unnamed);
    for (size_t i = 0; i < found.unnamed.size(); ++i) {
      const int64_t number = static_cast<int64_t>(i) + offset;
      if (number < 0) continue;  // before the first rank's recording
      matched[{0, static_cast<uint64_t>(number)}].push_back(
          {r, found.unnamed[i].begin_ns, found.unnamed[i].end_ns});
    }
  }
  struct Sum {
    Ns wait = 0;
    Ns transfer = 0;
    uint64_t last = 0;
    uint64_t n = 0;
  };
  struct Late {  // a step in which one rank was waited for
    std::vector<size_t> spans;
    Ns wait_ns = 0;
  };
  std::vector<Sum> sums(ranks.size());
  std::map<std::pair<size_t, size_t>, Late> late;  // (last rank, its step)
  uint64_t counted = 0;
  for (const auto& [key, arrivals] : matched) {
    if (arrivals.size() != ranks.size()) continue;
    // Only what lies in analysed steps of every rank says something about them.
    std::vector<size_t> spans(ranks.size());
    const bool inside = std::all_of(arrivals.begin(), arrivals.end(), [&](const Arrival& a) {
      spans[a.rank] = ranks[a.rank]->ledger->span_at(a.begin_ns);
      return spans[a.rank] < ranks[a.rank]->ledger->spans();
    });
    if (!inside) continue;
    ++counted;
    Ns transfer = INT64_MAX;
    const Arrival* last = &arrivals.front();
    for (const Arrival& arrival : arrivals) {
      transfer = std::min(transfer, arrival.end_ns - arrival.begin_ns);
      if (arrival.begin_ns > last->begin_ns) last = &arrival;
    }
    ++sums[last->rank].last;
    Late& step = late[{last->rank, spans[last->rank]}];
    step.spans = spans;
    for (const Arrival& arrival : arrivals) {
      const Ns wait = arrival.end_ns - arrival.begin_ns - transfer;
      sums[arrival.rank].transfer += transfer;
      sums[arrival.rank].wait += wait;
      step.wait_ns += wait;
      ++sums[arrival.rank].n;
    }
  }
  if (counted == 0) return out;
  // Before the waits are moved to other leaves below.
  Guilt guilt(ranks);
  const auto waiters = static_cast<Ns>(ranks.size() - 1);
  for (const auto& [key, step] : late) guilt.add(key.first, step.spans, step.wait_ns / waiters);
  for (size_t r = 0; r < ranks.size(); ++r) {
    const double steps = std::max<double>(1, static_cast<double>(ranks[r]->spans.size()));
    out[r].comm_wait_ns = static_cast<double>(sums[r].wait) / steps;
    out[r].comm_transfer_ns = static_cast<double>(sums[r].transfer) / steps;
    out[r].last_share = static_cast<double>(sums[r].last) / static_cast<double>(counted);
    guilt.write(out[r], r);
    const Ns both = sums[r].wait + sums[r].transfer;
    if (both > 0) {
      split_ledger(*ranks[r], static_cast<double>(sums[r].wait) / static_cast<double>(both));
    }
  }
  return out;
}

}  // namespace idlescope::diagnose
