#include "analysis/report/launch_phase.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace idlescope::report {

double launch_optimizer_share(const read::Process& process) {
  using Span = std::pair<read::Ns, read::Ns>;
  std::map<uint32_t, std::vector<Span>> optimizer;  // by thread, sorted, may nest
  for (const read::HostEvent& event : process.host_events) {
    if (event.kind == trace::EVENT_RANGE &&
        (event.b == trace::RANGE_OPTIMIZER || event.b == trace::RANGE_ZERO_GRAD)) {
      optimizer[event.thread_id].emplace_back(event.begin_ns, event.end_ns);
    }
  }
  if (optimizer.empty()) return 0;
  for (auto& [thread, spans] : optimizer) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) {  // running end, so that nesting does not matter
      spans[i].second = std::max(spans[i].second, spans[i - 1].second);
    }
  }
  uint64_t launches = 0;
  uint64_t inside = 0;
  for (const read::Call& call : process.calls) {
    if (call.parent != read::kNone) continue;
    const read::CallDescriptor& descriptor = process.call_descriptors[call.descriptor];
    if (descriptor.call_class != trace::CALL_LAUNCH) continue;
    ++launches;
    const auto spans = optimizer.find(descriptor.thread_id);
    if (spans == optimizer.end()) continue;
    auto after = std::upper_bound(spans->second.begin(), spans->second.end(),
                                  Span(call.begin_ns, INT64_MAX));
    if (after != spans->second.begin() && std::prev(after)->second > call.begin_ns) ++inside;
  }
  return launches > 0 ? static_cast<double>(inside) / static_cast<double>(launches) : 0;
}

}  // namespace idlescope::report
