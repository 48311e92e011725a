#include "profiler/host/nvml_sampler.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "profiler/host/counter_batch.h"

namespace idlescope::host {
namespace {

// From NVML's API reference (r580): structures of the versioned functions named here.
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;         // NVML_CLOCK_SM
constexpr int kTemperatureGpu = 0;  // NVML_TEMPERATURE_GPU
constexpr unsigned kMaxProcesses = 64;

struct Nvml {
  int (*init)();
  int (*by_pci)(const char*, void**);
  int (*utilization)(void*, Utilization*);
  int (*memory)(void*, Memory*);
  int (*clock)(void*, int, unsigned*);
  int (*temperature)(void*, int, unsigned*);
  int (*power)(void*, unsigned*);
  int (*processes)(void*, unsigned*, ProcessInfo*);
};
Nvml nvml;

template <typename Function>
void look_up(void* library, const char* name, Function* out) {
  void* address = dlsym(library, name);
  memcpy(out, &address, sizeof address);
}

}  // namespace

void NvmlSampler::add_device(uint32_t ordinal, const char* pci_bus_id) {
  if (device_count_ == kMaxNvmlDevices || pci_bus_id == nullptr || *pci_bus_id == '\0') return;
  Device& device = devices_[device_count_++];
  device.ordinal = ordinal;
  strncpy(device.pci_bus_id, pci_bus_id, sizeof device.pci_bus_id - 1);
}

void NvmlSampler::open() {
  state_ = State::kAbsent;
  if (dlopen == nullptr || dlsym == nullptr) return;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  look_up(library, "nvmlInit_v2", &nvml.init);
  look_up(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_pci);
  look_up(library, "nvmlDeviceGetUtilizationRates", &nvml.utilization);
  look_up(library, "nvmlDeviceGetMemoryInfo", &nvml.memory);
  look_up(library, "nvmlDeviceGetClockInfo", &nvml.clock);
  look_up(library, "nvmlDeviceGetTemperature", &nvml.temperature);
  look_up(library, "nvmlDeviceGetPowerUsage", &nvml.power);
  look_up(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes);
  if (nvml.init == nullptr || nvml.by_pci == nullptr || nvml.init() != kSuccess) return;
  for (int i = 0; i < device_count_; ++i) {
    Device& device = devices_[i];
    if (nvml.by_pci(device.pci_bus_id, &device.handle) != kSuccess) device.handle = nullptr;
  }
  state_ = State::kReady;
}

void NvmlSampler::sample(int64_t now_ns) {
  if (device_count_ == 0 || state_ == State::kAbsent || now_ns - last_ns_ < 1'000'000'000) return;
  last_ns_ = now_ns;
  if (state_ == State::kNotTried) open();
  if (state_ != State::kReady) return;
  CounterBatch batch;
  for (int i = 0; i < device_count_; ++i) {
    void* handle = devices_[i].handle;
    if (handle == nullptr) continue;
    const uint32_t device = devices_[i].ordinal + 1;
    Utilization utilization{};
    Memory memory{};
    unsigned value = 0;
    if (nvml.utilization != nullptr && nvml.utilization(handle, &utilization) == kSuccess) {
      batch.add(CounterKind::kNvmlUtilizationPercent, now_ns, utilization.gpu, device);
    }
    if (nvml.memory != nullptr && nvml.memory(handle, &memory) == kSuccess) {
      batch.add(CounterKind::kNvmlMemoryBytes, now_ns, static_cast<int64_t>(memory.used), device);
    }
    if (nvml.clock != nullptr && nvml.clock(handle, kClockSm, &value) == kSuccess) {
      batch.add(CounterKind::kNvmlSmClockMhz, now_ns, value, device);
    }
    if (nvml.temperature != nullptr &&
        nvml.temperature(handle, kTemperatureGpu, &value) == kSuccess) {
      batch.add(CounterKind::kNvmlTemperatureC, now_ns, value, device);
    }
    if (nvml.power != nullptr && nvml.power(handle, &value) == kSuccess) {
      batch.add(CounterKind::kNvmlPowerMw, now_ns, value, device);
    }
    ProcessInfo processes[kMaxProcesses];
    unsigned count = kMaxProcesses;
    if (nvml.processes != nullptr && nvml.processes(handle, &count, processes) == kSuccess) {
      // In a container NVML's pids are the host's and ours is not among them: then one of them
      // is taken to be us.
      const unsigned own = static_cast<unsigned>(getpid());
      unsigned others = 0;
      for (unsigned p = 0; p < count && p < kMaxProcesses; ++p) {
        if (processes[p].pid != own) ++others;
      }
      if (others == count && others > 0) --others;
      batch.add(CounterKind::kNvmlOtherProcesses, now_ns, others, device);
    }
  }
  batch.write();
}

}  // namespace idlescope::host
