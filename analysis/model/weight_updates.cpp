#include "analysis/model/weight_updates.h"

#include <algorithm>
#include <map>

#include "analysis/model/device_steps.h"
#include "analysis/model/op_anchors.h"

namespace idlescope::model {
namespace {

constexpr size_t kMinimumUpdates = 3;

struct Update {
  Ns time_ns;
  uint32_t label;
};

// Of several optimizers the one that is seen last closes the round; one that runs seldom
// (the last epoch's, say) closes nothing.
std::vector<Ns> closing_updates(std::vector<Update> all) {
  std::sort(all.begin(), all.end(),
            [](const Update& a, const Update& b) { return a.time_ns < b.time_ns; });
  std::map<uint32_t, size_t> runs;  // of updates with one label and no other between
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == 0 || all[i].label != all[i - 1].label) ++runs[all[i].label];
  }
  size_t most = 0;
  for (const auto& [label, n] : runs) most = std::max(most, n);
  std::vector<Ns> out;
  uint32_t closing = kNone;
  for (auto it = all.rbegin(); it != all.rend() && closing == kNone; ++it) {
    if (2 * runs[it->label] > most) closing = it->label;
  }
  for (const Update& update : all) {
    if (update.label == closing && (out.empty() || update.time_ns > out.back())) {
      out.push_back(update.time_ns);
    }
  }
  return out;
}

WeightUpdates from_ranges(const read::Process& process) {
  WeightUpdates out;
  std::vector<Update> all;
  for (const read::HostEvent& event : process.host_events) {
    if (event.kind == trace::EVENT_RANGE && event.b == trace::RANGE_OPTIMIZER) {
      all.push_back({event.begin_ns, static_cast<uint32_t>(event.a)});
    }
  }
  if (all.size() < kMinimumUpdates) return out;
  out.times_ns = closing_updates(std::move(all));
  out.seen.push_back({process.first_ns, process.last_ns});
  return out;
}

WeightUpdates from_kernels(const read::Recording& recording, const read::Process& process,
                           uint32_t index, const std::vector<DeviceTimeline>& devices) {
  WeightUpdates out;
  std::map<std::string, uint32_t> families;
  std::vector<uint32_t> label(process.op_descriptors.size(), kNone);
  for (size_t d = 0; d < label.size(); ++d) {
    const read::OpDescriptor& op = process.op_descriptors[d];
    const std::string& name = recording.strings[op.name];
    if (op.kind != trace::OP_KERNEL || op.graph_id != 0 || !is_optimizer_kernel(name)) continue;
    label[d] = families.try_emplace(kernel_family(name), static_cast<uint32_t>(families.size()))
                   .first->second;
  }
  if (families.empty()) return out;
  std::vector<Update> all;
  for (const DeviceTimeline& device : devices) {
    if (device.process != index) continue;
    for (const uint32_t o : device.ops) {
      const read::Op& op = process.ops[o];
      if (label[op.descriptor] != kNone) {
        all.push_back({launch_time(process, op), label[op.descriptor]});
      }
    }
    for (const WindowSpan& window : device.windows) {
      out.seen.push_back({window.begin_ns, window.end_ns});
    }
  }
  if (all.size() < kMinimumUpdates) return {};
  out.times_ns = closing_updates(std::move(all));
  std::sort(out.seen.begin(), out.seen.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin_ns < b.begin_ns; });
  return out;
}

}  // namespace

bool WeightUpdates::seen_in(Ns begin_ns, Ns end_ns) const {
  return std::any_of(seen.begin(), seen.end(), [&](const Stretch& stretch) {
    return stretch.begin_ns <= begin_ns && end_ns <= stretch.end_ns;
  });
}

WeightUpdates find_weight_updates(const read::Recording& recording, uint32_t process,
                                  const std::vector<DeviceTimeline>& devices) {
  const read::Process& p = recording.processes[process];
  WeightUpdates updates = from_ranges(p);
  if (updates.times_ns.empty()) updates = from_kernels(recording, p, process, devices);
  return updates;
}

}  // namespace idlescope::model
