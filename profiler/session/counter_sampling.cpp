#include "profiler/session/counter_sampling.h"

#include "profiler/cuda/driver_api.h"
#include "profiler/host/nvml_sampler.h"
#include "profiler/host/process_counters.h"

namespace idlescope::session {
namespace {

constexpr uint32_t kMaxDevices = host::kMaxNvmlDevices;

host::NvmlSampler nvml;
bool devices_known = false;

void find_devices() {
  devices_known = true;
  cuda::DriverApi driver;
  if (!driver.load()) return;
  for (uint32_t ordinal = 0; ordinal < kMaxDevices; ++ordinal) {
    emit::DeviceFact fact{};
    if (!driver.device(ordinal, &fact)) break;
    nvml.add_device(ordinal, fact.pci_bus_id);
  }
}

}  // namespace

void sample_counters(int64_t now_ns) {
  if (!devices_known) {
    host::sampling_thread_started();
    find_devices();
  }
  host::sample_process_counters(now_ns);
  nvml.sample(now_ns);
}

}  // namespace idlescope::session
