#include "analysis/diagnose/not_it.h"

#include <algorithm>

#include "analysis/diagnose/leaves.h"

namespace idlescope::diagnose {
namespace {

bool names(const std::string& call, const char* part) {
  return call.find(part) != std::string::npos;
}

// What a call name of the runtime or driver API is about, for grouping only.
NotIt::What kind_of(const std::string& name) {
  if (names(name, "Synchronize")) return NotIt::What::kSync;
  if (names(name, "emcpy")) return NotIt::What::kCopyCall;
  return NotIt::What::kLaunch;
}

}  // namespace

void charge_loader(const Shares& shares, const model::Model& model, uint32_t process,
                   const DevicePass& pass, double steps, LoaderSummary& loader) {
  if (!loader.seen) return;
  double waited = 0;
  size_t span = 0;
  std::vector<std::pair<Ns, Ns>> nexts;
  for (const model::Iterator& iterator : model.loader.iterators) {
    if (iterator.process != process) continue;
    for (const uint32_t b : iterator.batches) {
      nexts.push_back({model.loader.batches[b].next_begin_ns, model.loader.batches[b].next_end_ns});
    }
  }
  std::sort(nexts.begin(), nexts.end());
  for (const auto& [begin, end] : nexts) {
    while (span < pass.spans.size() && pass.spans[span].end_ns <= begin) ++span;
    for (size_t s = span; s < pass.spans.size() && pass.spans[s].begin_ns < end; ++s) {
      waited += static_cast<double>(std::min(end, pass.spans[s].end_ns) -
                                    std::max(begin, pass.spans[s].begin_ns));
    }
  }
  double charged = 0;
  for (const LeafTime& time : shares.leaves) {
    if (is_data(time.leaf)) charged += static_cast<double>(time.total_ns);
  }
  const double n = steps > 0 ? steps : 1;
  loader.wait_mean_ns = waited / n;
  loader.hidden_wait_ns = std::max(0.0, waited - charged) / n;
}

std::vector<NotIt> find_not_it(const DeviceDiagnosis& device, const std::vector<CallSummary>& calls,
                               const LoaderSummary& loader, double steps) {
  std::vector<NotIt> out;
  const double n = steps > 0 ? steps : 1;
  for (const CallSummary& call : calls) {
    const bool known =
        names(call.name, "Synchronize") || names(call.name, "emcpy") || names(call.name, "Launch");
    if (!known) continue;
    NotIt candidate;
    candidate.what = kind_of(call.name);
    candidate.name = call.name;
    candidate.host_ns_per_step = static_cast<double>(call.host_ns) / n;
    candidate.cost_ns_per_step = static_cast<double>(call.cost_ns) / n;
    candidate.back_pressure = candidate.what == NotIt::What::kLaunch && device.back_pressure;
    out.push_back(candidate);
  }
  if (loader.seen && loader.wait_mean_ns > 0) {
    NotIt candidate;
    candidate.what = NotIt::What::kNext;
    candidate.name = "next()";
    candidate.host_ns_per_step = loader.wait_mean_ns;
    candidate.cost_ns_per_step = loader.wait_mean_ns - loader.hidden_wait_ns;
    out.push_back(candidate);
  }
  // Only what looks large and is not: at least 3 % of the step on the host, and at most a
  // third of it charged.
  const double base = static_cast<double>(device.window_ns) / n;
  std::erase_if(out, [&](const NotIt& candidate) {
    return candidate.host_ns_per_step < 0.03 * base ||
           candidate.cost_ns_per_step > candidate.host_ns_per_step / 3;
  });
  std::stable_sort(out.begin(), out.end(), [](const NotIt& a, const NotIt& b) {
    return a.host_ns_per_step > b.host_ns_per_step;
  });
  return out;
}

}  // namespace idlescope::diagnose
