#include "analysis/diagnose/autotune.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "analysis/diagnose/kernel_fill.h"

namespace idlescope::diagnose {
namespace {

constexpr size_t kVariants = 3;

// Kernels that come with a variant: layout changes, reductions of split work.
bool comes_with_a_variant(std::string_view name) {
  for (const char* part : {"nchw", "nhwc", "transpose", "splitk", "splitK", "reduce", "im2col"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

struct Seen {
  size_t first = SIZE_MAX;
  size_t last = 0;
  size_t count = 0;
  // Its launches follow each other: a trial is timed and not run again.
  bool once() const { return last - first <= 4 * count + 16; }
};

class Trials {
 public:
  Trials(const read::Process& process, const model::ProcessModel& owner, const CallLeaf& calls)
      : process_(process), owner_(owner), calls_(calls) {}

  void add(uint32_t op) {
    names_.insert(process_.op_descriptors[process_.ops[op].descriptor].name);
    if (last_ != kNone && host_waited_between(last_, op)) ++waits_;
    if (first_ == kNone) first_ = op;
    last_ = op;
    ++count_;
  }

  void end(std::vector<model::Stretch>& out) {
    if (names_.size() >= kVariants && 2 * waits_ >= count_ - 1) {
      const read::Op& first = process_.ops[first_];
      out.push_back({model::launch_time(process_, first), process_.ops[last_].end_ns});
    }
    names_.clear();
    first_ = last_ = kNone;
    waits_ = count_ = 0;
  }

 private:
  bool host_waited_between(uint32_t before, uint32_t after) const {
    const uint32_t call = process_.ops[after].call;
    if (call == kNone) return false;
    const model::ThreadTimeline* thread =
        owner_.threads.find(process_.call_descriptors[process_.calls[call].descriptor].thread_id);
    if (thread == nullptr) return false;
    const Ns from = model::launch_time(process_, process_.ops[before]);
    size_t i = thread->last_before(process_.calls[call].begin_ns);
    for (int steps = 0; i != model::ThreadTimeline::npos && steps < 32; --i, ++steps) {
      const model::Segment& segment = thread->segments[i];
      if (segment.begin_ns <= from) return false;
      if (segment.source == model::Source::kCall && calls_.waits(segment.ref)) return true;
      if (i == 0) break;
    }
    return false;
  }

  const read::Process& process_;
  const model::ProcessModel& owner_;
  const CallLeaf& calls_;
  std::unordered_set<uint32_t> names_;
  uint32_t first_ = kNone;
  uint32_t last_ = kNone;
  size_t waits_ = 0;
  size_t count_ = 0;
};

}  // namespace

std::vector<model::Stretch> find_autotuning(const model::Model& model,
                                            const model::DeviceTimeline& device,
                                            const CallLeaf& calls) {
  const read::Process& process = model.process_of(device);
  const model::ProcessModel& owner = model.processes[device.process];
  std::vector<Seen> seen(process.op_descriptors.size());
  std::vector<bool> matrix(process.op_descriptors.size());
  std::vector<bool> helper(process.op_descriptors.size());
  bool any = false;
  for (size_t d = 0; d < seen.size(); ++d) {
    const read::OpDescriptor& op = process.op_descriptors[d];
    const std::string_view name = model.recording.strings[op.name];
    matrix[d] = op.kind == trace::OP_KERNEL && is_matrix_kernel(name);
    helper[d] = op.kind != trace::OP_KERNEL || comes_with_a_variant(name);
    any = any || matrix[d];
  }
  std::vector<model::Stretch> out;
  if (!any) return out;
  for (size_t i = 0; i < device.ops.size(); ++i) {
    Seen& s = seen[process.ops[device.ops[i]].descriptor];
    s.first = std::min(s.first, i);
    s.last = i;
    ++s.count;
  }
  Trials trials(process, owner, calls);
  for (const uint32_t o : device.ops) {
    const uint32_t d = process.ops[o].descriptor;
    if (matrix[d] && seen[d].once()) {
      trials.add(o);
    } else if (!helper[d]) {
      trials.end(out);
    }
  }
  trials.end(out);
  return out;
}

}  // namespace idlescope::diagnose
