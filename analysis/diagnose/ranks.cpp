#include "analysis/diagnose/ranks.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace idlescope::diagnose {
namespace {

using Key = std::tuple<uint64_t, uint64_t>;  // communicator, sequence

struct Arrival {
  size_t rank;  // index into the list of ranks
  Ns begin_ns;
  Ns end_ns;
};

// Communication ops of one device by key.
std::map<Key, read::Op> collectives_of(const model::Model& model,
                                       const model::DeviceTimeline& device) {
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  std::unordered_map<uint64_t, Key> named;  // (window, correlation) of the launching call
  for (const read::Collective& collective : process.collectives) {
    if (collective.correlation == 0) continue;
    named[uint64_t{collective.window} << 32 | collective.correlation] = {collective.communicator,
                                                                         collective.sequence};
  }
  std::map<Key, read::Op> out;
  uint64_t order = 0;
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
    if (owner.work[op.descriptor] != model::Work::kComm || descriptor.kind != trace::OP_KERNEL) {
      continue;
    }
    const auto it = named.find(uint64_t{op.window} << 32 | op.correlation);
    if (it != named.end()) {
      out[it->second] = op;
    } else if (named.empty()) {
      out[{0, order++}] = op;
    }
  }
  return out;
}

// Time a rank spends in a leaf per step.
double per_step(const DevicePass& pass, size_t leaf) {
  const double n = std::max<double>(1, static_cast<double>(pass.spans.size()));
  return static_cast<double>(pass.ledger->totals()[leaf]) / n;
}

struct Guilt {
  report::Leaf leaf{};
  double ns = 0;
};

// The leaf in which `late` spends most more than the mean of the others.
Guilt compare_leaves(const std::vector<DevicePass*>& passes, size_t late) {
  Guilt guilt;
  for (size_t l = 0; l < kLeafCount; ++l) {
    const report::Leaf leaf = kLeaves[l];
    if (leaf == report::BUSY_COMM_EXPOSED || leaf == report::PROFILER) continue;
    double others = 0;
    for (size_t r = 0; r < passes.size(); ++r) {
      if (r != late) others += per_step(*passes[r], l);
    }
    others /= std::max<double>(1, static_cast<double>(passes.size() - 1));
    const double more = per_step(*passes[late], l) - others;
    if (more > guilt.ns) guilt = {leaf, more};
  }
  return guilt;
}

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
  if (ranks.size() < 2) return {};

  std::map<Key, std::vector<Arrival>> matched;
  for (size_t r = 0; r < ranks.size(); ++r) {
    for (const auto& [key, op] : collectives_of(model, model.devices[ranks[r]->device])) {
      matched[key].push_back({r, op.begin_ns, op.end_ns});
    }
  }
  struct Sum {
    Ns wait = 0;
    Ns transfer = 0;
    uint64_t last = 0;
    uint64_t n = 0;
  };
  std::vector<Sum> sums(ranks.size());
  uint64_t counted = 0;
  for (const auto& [key, arrivals] : matched) {
    if (arrivals.size() != ranks.size()) continue;
    // Only what lies in analysed steps of every rank says something about them.
    const bool inside = std::all_of(arrivals.begin(), arrivals.end(), [&](const Arrival& a) {
      return ranks[a.rank]->ledger->covers(a.begin_ns, a.begin_ns + 1);
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
    for (const Arrival& arrival : arrivals) {
      sums[arrival.rank].transfer += transfer;
      sums[arrival.rank].wait += arrival.end_ns - arrival.begin_ns - transfer;
      ++sums[arrival.rank].n;
    }
  }
  if (counted == 0) return out;
  const size_t slowest = static_cast<size_t>(
      std::max_element(sums.begin(), sums.end(),
                       [](const Sum& a, const Sum& b) { return a.last < b.last; }) -
      sums.begin());
  const Guilt guilt = compare_leaves(ranks, slowest);
  for (size_t r = 0; r < ranks.size(); ++r) {
    const double steps = std::max<double>(1, static_cast<double>(ranks[r]->spans.size()));
    out[r].comm_wait_ns = static_cast<double>(sums[r].wait) / steps;
    out[r].comm_transfer_ns = static_cast<double>(sums[r].transfer) / steps;
    out[r].last_share = static_cast<double>(sums[r].last) / static_cast<double>(counted);
    const Ns both = sums[r].wait + sums[r].transfer;
    if (both > 0) {
      split_ledger(*ranks[r], static_cast<double>(sums[r].wait) / static_cast<double>(both));
    }
  }
  out[slowest].guilty_leaf = guilt.leaf;
  out[slowest].guilty_ns = guilt.ns;
  return out;
}

}  // namespace idlescope::diagnose
