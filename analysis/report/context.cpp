#include "analysis/report/context.h"

#include <algorithm>
#include <cmath>

namespace idlescope::report {

Context::Context(const diagnose::Diagnosis& diagnosis, const read::Recording& from)
    : d(diagnosis), recording(from) {
  if (d.chosen_device < d.devices.size()) device = &d.devices[d.chosen_device];
  per_step = !d.step.window_only && d.step.mean_ns > 0;
  if (per_step) {
    unit_ns = d.step.mean_ns;
    steps = static_cast<double>(std::max<uint64_t>(1, d.step.steady_steps));
  } else if (device) {
    unit_ns = static_cast<double>(device->window_ns);
  } else {
    unit_ns = d.run.mean_step_ns;
  }
  imported = recording.origin != read::Origin::kIdlescope;
  cpp = !imported && d.chosen_process < d.processes.size() &&
        d.processes[d.chosen_process].python_version.empty() &&
        d.processes[d.chosen_process].executable.find("python") == std::string::npos;
  scale = TimeScale(std::llround(unit_ns));
}

double Context::leaf_ns(Leaf leaf) const {
  if (!device) return 0;
  for (const diagnose::LeafTime& time : device->leaves) {
    if (time.leaf == leaf) return per_step ? time.per_step_ns : static_cast<double>(time.total_ns);
  }
  return 0;
}

double Context::verdict_ns(Verdict verdict) const {
  double sum = 0;
  if (!device) return 0;
  for (const diagnose::LeafTime& time : device->leaves) {
    if (verdict_of(time.leaf) == verdict) {
      sum += per_step ? time.per_step_ns : static_cast<double>(time.total_ns);
    }
  }
  return sum;
}

double Context::waits_ns() const {
  return verdict_ns(SYNC) + verdict_ns(TRANSFER) - leaf_ns(BUSY_COPY_EXPOSED);
}

std::string Context::time(double ns) const { return scale.with_unit(std::llround(ns)); }

std::string Context::site(const std::string& recorded) const {
  std::string place = recorded.substr(0, recorded.find(' '));
  std::string directory;
  if (d.chosen_process < recording.processes.size()) {
    directory = recording.processes[d.chosen_process].header.process().working_directory();
  }
  if (!directory.empty() && directory.back() != '/') directory += '/';
  if (directory.size() > 1 && place.compare(0, directory.size(), directory) == 0) {
    return place.substr(directory.size());
  }
  return place.substr(place.rfind('/') + 1);
}

std::string Context::site_and_function(const std::string& recorded) const {
  const size_t space = recorded.find(' ');
  return site(recorded) + (space == recorded.npos ? "" : recorded.substr(space));
}

double Context::bound(double removed_ns) const {
  return removed_ns < unit_ns ? unit_ns / (unit_ns - removed_ns) : 0;
}

}  // namespace idlescope::report
