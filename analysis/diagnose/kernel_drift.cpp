#include "analysis/diagnose/kernel_drift.h"

#include <algorithm>
#include <vector>

namespace idlescope::diagnose {
namespace {

constexpr uint64_t kOften = 10;            // in either quarter
constexpr double kOfCompute = 0.5;         // of the last quarter's time must be comparable
constexpr size_t kSteps = 20;              // fewer analysed steps say nothing about a trend
constexpr Ns kLongEnough = 1'000'000'000;  // clocks do not change within less

struct Quarter {
  double ns = 0;
  uint64_t count = 0;
};

}  // namespace

double kernel_drift(const model::Model& model, const DevicePass& pass) {
  const model::DeviceTimeline& device = model.devices[pass.device];
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  if (pass.window_only || pass.spans.size() < kSteps) return 0;
  const size_t quarter = pass.spans.size() / 4;
  const Ns first_begin = pass.spans.front().begin_ns;
  const Ns first_end = pass.spans[quarter - 1].end_ns;
  const Ns last_begin = pass.spans[pass.spans.size() - quarter].begin_ns;
  const Ns last_end = pass.spans.back().end_ns;
  if (last_begin - first_begin < kLongEnough) return 0;
  std::vector<Quarter> first(process.op_descriptors.size());
  std::vector<Quarter> last(process.op_descriptors.size());
  for (const uint32_t i : device.ops) {
    const read::Op& op = process.ops[i];
    if (owner.work[op.descriptor] != model::Work::kCompute) continue;
    const bool early = op.begin_ns >= first_begin && op.begin_ns < first_end;
    const bool late = op.begin_ns >= last_begin && op.begin_ns < last_end;
    if (!early && !late) continue;
    Quarter& sum = early ? first[op.descriptor] : last[op.descriptor];
    sum.ns += static_cast<double>(op.end_ns - op.begin_ns);
    ++sum.count;
  }
  double all = 0;
  double now = 0;     // of the last quarter, comparable kernels
  double before = 0;  // the same launches at the durations of the first
  for (size_t d = 0; d < last.size(); ++d) {
    all += last[d].ns;
    if (first[d].count < kOften || last[d].count < kOften) continue;
    now += last[d].ns;
    before +=
        first[d].ns / static_cast<double>(first[d].count) * static_cast<double>(last[d].count);
  }
  if (before <= 0 || now < kOfCompute * all) return 0;
  return now / before - 1;
}

}  // namespace idlescope::diagnose
