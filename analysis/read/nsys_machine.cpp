#include "analysis/read/nsys_machine.h"

#include <map>
#include <string>
#include <utility>

#include "analysis/read/plausible_time.h"

namespace idlescope::read {
namespace {

std::string uuid_bytes(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  // All zero: not known.
  const bool known = bytes.size() == 16 && bytes.find_first_not_of('\0') != bytes.npos;
  return known ? bytes : std::string();
}

void describe_devices(NsysSides& sides) {
  // CUDA ordinal of a process to GPU of the machine; equal where the table is absent.
  std::map<std::pair<uint32_t, uint32_t>, int64_t> gpu_of;
  sides.file().scan("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"},
                    [&gpu_of](const SqliteRow& row) {
                      gpu_of[{row.id(2), row.id(1)}] = row.integer(0);
                    });
  std::map<int64_t, trace::Device> gpus;
  sides.file().scan("TARGET_INFO_GPU",
                    {"id", "name", "busLocation", "totalMemory", "smCount", "uuid", "computeMajor",
                     "computeMinor", "maxBlocksPerSm", "maxWarpsPerSm", "threadsPerWarp",
                     "maxRegistersPerSm", "maxShmemPerSm", "clockRate"},
                    [&gpus](const SqliteRow& row) {
                      trace::Device& gpu = gpus[row.integer(0)];
                      gpu.set_name(std::string(row.text(1)));
                      gpu.set_pci_bus_id(std::string(row.text(2)));
                      gpu.set_memory_bytes(static_cast<uint64_t>(row.integer(3)));
                      gpu.set_sm_count(row.id(4));
                      gpu.set_uuid(uuid_bytes(row.text(5)));
                      gpu.set_compute_major(row.id(6));
                      gpu.set_compute_minor(row.id(7));
                      gpu.set_max_blocks_per_sm(row.id(8));
                      gpu.set_max_threads_per_sm(row.id(9) * row.id(10));
                      gpu.set_warp_size(row.id(10));
                      gpu.set_max_registers_per_sm(row.id(11));
                      gpu.set_max_shared_bytes_per_sm(static_cast<uint64_t>(row.integer(12)));
                      gpu.set_core_clock_khz(static_cast<uint32_t>(row.integer(13) / 1000));
                    });
  for (auto& [global_pid, side] : sides.all()) {
    for (Device& device : side->builder.process().devices) {
      const uint32_t ordinal = device.info.device_id();
      const auto mapped = gpu_of.find({nsys_pid_of(global_pid), ordinal});
      const auto gpu = gpus.find(mapped == gpu_of.end() ? ordinal : mapped->second);
      if (gpu == gpus.end()) continue;
      device.info = gpu->second;
      device.info.set_device_id(ordinal);
      device.identity = sides.path() + "/gpu" + std::to_string(gpu->first);
    }
  }
}

}  // namespace

void describe_nsys_machine(NsysSides& sides) {
  Ns utc_ns = 0;
  sides.file().scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"},
                    [&utc_ns](const SqliteRow& row) { utc_ns = row.integer(0); });
  std::string host;
  sides.file().scan("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&host](const SqliteRow& row) {
    if (row.text(0) == "Hostname") host = std::string(row.text(1));
  });
  std::string tool = "Nsight Systems";
  for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    sides.file().scan(table, {"name", "value"}, [&tool](const SqliteRow& row) {
      if (row.text(0) == "EXPORT_PRODUCT_VERSION") {
        tool = "Nsight Systems " + std::string(row.text(1));
      }
    });
  }
  std::map<uint64_t, std::string> names;
  sides.file().scan("PROCESSES", {"globalPid", "name"}, [&names](const SqliteRow& row) {
    names[static_cast<uint64_t>(row.integer(0))] = std::string(row.text(1));
  });
  for (auto& [global_pid, side] : sides.all()) {
    trace::Header& header = side->builder.process().header;
    header.set_tool(tool);
    header.mutable_process()->set_pid(nsys_pid_of(global_pid));
    header.mutable_process()->set_host(host);
    header.mutable_process()->set_executable(names[global_pid]);
    if (utc_ns > 0 && plausible_time(utc_ns)) {
      // Times count from the start of the session.
      header.mutable_clock()->set_monotonic_ns(0);
      header.mutable_clock()->set_realtime_ns(utc_ns);
      header.mutable_clock()->set_uncertainty_ns(1'000'000);
      side->builder.process().clock_pairs.push_back(header.clock());
    }
  }
  sides.file().scan("ThreadNames", {"nameId", "globalTid"}, [&sides](const SqliteRow& row) {
    NsysSides::Side* to = sides.find(nsys_process_of(row.integer(1)));
    if (to == nullptr) return;
    to->builder.process().thread_names[nsys_thread_of(row.integer(1))] =
        std::string(sides.text(row.integer(0)));
  });
  describe_devices(sides);
}

}  // namespace idlescope::read
