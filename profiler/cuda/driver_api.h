// The few CUDA driver functions that the recorder calls itself, found in the job's libcuda.
//
// In: a process that has initialised CUDA. Out: device facts; the relaxed capture mode of our
// thread. Drain thread only. None of these functions needs a context or touches a stream.
#pragma once

#include <cstdint>

#include "profiler/emit/device_packets.h"

namespace idlescope::cuda {

class DriverApi {
 public:
  // Finds libcuda.so.1 among the mapped libraries. False: not there (or a test).
  bool load();
  bool loaded() const { return get_device_ != nullptr; }

  // With this mode a call of our thread neither fails nor breaks a capture that another
  // thread has open (cuThreadExchangeStreamCaptureMode, CUDA Driver API).
  void relax_capture_mode() const;

  uint32_t driver_version() const;  // 13000; 0: unknown
  // False: no such device.
  bool device(uint32_t ordinal, emit::DeviceFact* out) const;

 private:
  int (*driver_get_version_)(int*) = nullptr;
  int (*exchange_capture_mode_)(int*) = nullptr;
  int (*get_device_)(int*, int) = nullptr;
  int (*get_name_)(char*, int, int) = nullptr;
  int (*get_uuid_)(void*, int) = nullptr;
  int (*get_attribute_)(int*, int, int) = nullptr;
  int (*get_pci_bus_id_)(char*, int, int) = nullptr;
  int (*total_memory_)(uint64_t*, int) = nullptr;
};

}  // namespace idlescope::cuda
