#include "profiler/cuda/driver_api.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>

#include <cstring>

namespace idlescope::cuda {
namespace {

template <typename Function>
void resolve(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  …" in this file of the driver.
void read_driver_text(char* out, size_t capacity) {
  FILE* file = fopen("/proc/driver/nvidia/version", "re");
  if (file == nullptr) return;
  char line[256];
  if (fgets(line, sizeof line, file) != nullptr) {
    for (char* word = strtok(line, " \t\n"); word != nullptr; word = strtok(nullptr, " \t\n")) {
      const size_t size = strlen(word);
      if (strspn(word, "0123456789.") == size && strchr(word, '.') != nullptr && size < capacity) {
        memcpy(out, word, size + 1);
        break;
      }
    }
  }
  fclose(file);
}

}  // namespace

bool DriverApi::load() {
  if (loaded()) return true;
  if (dlopen == nullptr) return false;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  resolve(library, "cuDriverGetVersion", &driver_get_version_);
  resolve(library, "cuThreadExchangeStreamCaptureMode", &exchange_capture_mode_);
  resolve(library, "cuDeviceGet", &get_device_);
  resolve(library, "cuDeviceGetName", &get_name_);
  resolve(library, "cuDeviceGetUuid_v2", &get_uuid_);
  if (get_uuid_ == nullptr) resolve(library, "cuDeviceGetUuid", &get_uuid_);
  resolve(library, "cuDeviceGetAttribute", &get_attribute_);
  resolve(library, "cuDeviceGetPCIBusId", &get_pci_bus_id_);
  resolve(library, "cuDeviceTotalMem_v2", &total_memory_);
  return loaded();
}

void DriverApi::relax_capture_mode() const {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (exchange_capture_mode_ != nullptr) exchange_capture_mode_(&mode);
}

uint32_t DriverApi::driver_version() const {
  int version = 0;
  if (driver_get_version_ == nullptr || driver_get_version_(&version) != 0) return 0;
  return static_cast<uint32_t>(version);
}

bool DriverApi::device(uint32_t ordinal, emit::DeviceFact* out) const {
  memset(static_cast<void*>(out), 0, sizeof *out);
  out->device_id = ordinal;
  int device = 0;
  if (!loaded() || get_device_(&device, static_cast<int>(ordinal)) != 0) return false;
  if (get_name_ != nullptr) get_name_(out->name, sizeof out->name - 1, device);
  if (get_uuid_ != nullptr) out->has_uuid = get_uuid_(out->uuid, device) == 0;
  if (get_pci_bus_id_ != nullptr) {
    get_pci_bus_id_(out->pci_bus_id, sizeof out->pci_bus_id - 1, device);
    for (char* c = out->pci_bus_id; *c != '\0'; ++c) {
      if (*c >= 'A' && *c <= 'Z') *c = static_cast<char>(*c | 0x20);
    }
  }
  if (total_memory_ != nullptr) total_memory_(&out->memory_bytes, device);
  const auto attribute = [&](CUdevice_attribute which) -> uint32_t {
    int value = 0;
    if (get_attribute_ == nullptr || get_attribute_(&value, which, device) != 0) return 0;
    return static_cast<uint32_t>(value);
  };
  out->compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  out->compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out->sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out->max_threads_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  out->max_blocks_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  out->max_registers_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  out->max_shared_bytes_per_sm =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  out->core_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  out->warp_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  out->cuda_driver_version = driver_version();
  read_driver_text(out->driver_version, sizeof out->driver_version);
  return true;
}

}  // namespace idlescope::cuda
