// What the driver says about the job's GPUs once a second: utilisation, memory, clock,
// temperature, power, other processes.
//
// In: libnvidia-ml.so.1, opened at run time (its header is not everywhere: the few functions
// are declared here). Out: CounterBatch packets. Drain thread only, after CUDA came up: its
// first call takes tens of milliseconds.
#pragma once

#include <cstdint>

namespace idlescope::host {

inline constexpr int kMaxNvmlDevices = 16;

class NvmlSampler {
 public:
  // A device of the job by PCI id ("0000:3b:00.0"), which is what NVML and CUDA agree on.
  void add_device(uint32_t ordinal, const char* pci_bus_id);
  // Samples if a second has passed since the last time.
  void sample(int64_t now_ns);

 private:
  enum class State { kNotTried, kReady, kAbsent };
  struct Device {
    uint32_t ordinal;
    void* handle;
    char pci_bus_id[32];
  };
  void open();

  State state_ = State::kNotTried;
  Device devices_[kMaxNvmlDevices] = {};
  int device_count_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace idlescope::host
