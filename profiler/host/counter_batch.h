// A handful of counter readings on their way into one CounterBatch packet.
//
// In: kind, value. Out: a packet in the file. No allocation. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idlescope::host {

// CounterKind of trace.proto, the ones that are sampled here.
enum class CounterKind : uint32_t {
  kProcessCpuNs = 1,
  kTreeCpuNs = 2,
  kCgroupCpuNs = 3,
  kCgroupQuotaMillicpu = 4,
  kSystemCpuBusyNs = 5,
  kRssBytes = 6,
  kNvmlUtilizationPercent = 16,
  kNvmlMemoryBytes = 17,
  kNvmlSmClockMhz = 18,
  kNvmlTemperatureC = 19,
  kNvmlPowerMw = 20,
  kNvmlOtherProcesses = 21,
};

class CounterBatch {
 public:
  // Negative values are counters that could not be read: left out.
  void add(CounterKind kind, int64_t time_ns, int64_t value, uint32_t device_plus_1 = 0);
  // Appends the packet; false: nothing to write or no room.
  bool write();

 private:
  static constexpr size_t kMaxSamples = 80;
  struct Sample {
    CounterKind kind;
    uint32_t device_plus_1;
    int64_t time_ns;
    int64_t value;
  };
  Sample samples_[kMaxSamples];
  size_t count_ = 0;
};

}  // namespace idlescope::host
