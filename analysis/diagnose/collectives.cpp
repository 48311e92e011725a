#include "analysis/diagnose/collectives.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

namespace idlescope::diagnose {
namespace {

using Key = std::tuple<uint64_t, uint64_t>;  // communicator, sequence

// "all_reduce", "AllReduce", "allreduce_coalesced" -> "allreduce…".
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

bool is(const std::string& name, std::string_view what) {
  return name.find(what) != std::string::npos;
}

}  // namespace

double bus_factor(std::string_view collective, uint32_t ranks) {
  if (ranks < 2) return 0;
  const std::string name = plain(collective);
  const double n = ranks;
  if (is(name, "allreduce")) return 2 * (n - 1) / n;
  if (is(name, "reducescatter") || is(name, "allgather") || is(name, "alltoall")) {
    return (n - 1) / n;
  }
  if (is(name, "broadcast") || is(name, "reduce") || is(name, "send") || is(name, "recv")) return 1;
  return 0;
}

namespace {

struct Seen {
  const read::Collective* what;
  Ns begin_ns;
  Ns duration_ns;
};

std::vector<Seen> seen_by(const model::Model& model, const model::DeviceTimeline& device) {
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  std::unordered_map<uint64_t, const read::Collective*> named;
  for (const read::Collective& collective : process.collectives) {
    if (collective.correlation == 0) continue;
    named[uint64_t{collective.window} << 32 | collective.correlation] = &collective;
  }
  std::vector<Seen> out;
  if (named.empty()) return out;
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    if (owner.work[op.descriptor] != model::Work::kComm) continue;
    const auto it = named.find(uint64_t{op.window} << 32 | op.correlation);
    if (it == named.end()) continue;
    out.push_back({it->second, op.begin_ns, op.end_ns - op.begin_ns});
  }
  return out;
}

}  // namespace

std::vector<CollectiveSummary> summarize_collectives(const model::Model& model,
                                                     const std::vector<DevicePass*>& passes,
                                                     uint32_t chosen) {
  struct Shortest {
    Ns ns = INT64_MAX;
    uint32_t ranks = 0;
  };
  std::map<Key, Shortest> shortest;
  for (const DevicePass* pass : passes) {
    for (const Seen& seen : seen_by(model, model.devices[pass->device])) {
      if (seen.what->communicator == 0) continue;
      Shortest& of = shortest[{seen.what->communicator, seen.what->sequence}];
      of.ns = std::min(of.ns, seen.duration_ns);
      ++of.ranks;
    }
  }
  const DevicePass& pass = *passes[chosen];
  std::map<std::pair<std::string, uint32_t>, CollectiveSummary> kinds;
  for (const Seen& seen : seen_by(model, model.devices[pass.device])) {
    const std::string& name = model.recording.strings[seen.what->name];
    const uint32_t ranks = seen.what->ranks;
    if (seen.what->bytes == 0 || bus_factor(name, ranks) <= 0 || seen.duration_ns <= 0) continue;
    if (pass.ledger->span_at(seen.begin_ns) >= pass.ledger->spans()) continue;
    const auto it = shortest.find({seen.what->communicator, seen.what->sequence});
    const bool all = it != shortest.end() && it->second.ranks >= ranks;
    CollectiveSummary& kind = kinds[{name, ranks}];
    kind.name = name;
    kind.ranks = ranks;
    ++kind.count;
    kind.bytes += seen.what->bytes;
    kind.total_ns += seen.duration_ns;
    kind.transfer_ns += all ? it->second.ns : seen.duration_ns;
    kind.one_rank = kind.one_rank || !all;
  }
  std::vector<CollectiveSummary> out;
  for (auto& [key, kind] : kinds) {
    if (kind.transfer_ns <= 0) continue;
    kind.alg_gb_per_s = static_cast<double>(kind.bytes) / static_cast<double>(kind.transfer_ns);
    kind.bus_gb_per_s = kind.alg_gb_per_s * bus_factor(kind.name, kind.ranks);
    out.push_back(std::move(kind));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace idlescope::diagnose
