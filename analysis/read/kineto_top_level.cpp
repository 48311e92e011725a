#include "analysis/read/kineto_top_level.h"

#include <charconv>

#include <simdjson.h>

#include "analysis/read/kineto_event.h"

namespace idlescope::read {
namespace {

namespace dom = simdjson::dom;

uint64_t number_or_0(const dom::element& object, std::string_view key) {
  int64_t value = 0;
  return object[key].get(value) == simdjson::SUCCESS && value > 0 ? static_cast<uint64_t>(value)
                                                                  : 0;
}

void take_devices(const dom::element& list,
                  std::vector<KinetoTopLevel::DeviceProperties>& devices) {
  dom::array devices_json;
  if (list.get(devices_json) != simdjson::SUCCESS) return;
  for (const dom::element device : devices_json) {
    KinetoTopLevel::DeviceProperties added;
    added.id = static_cast<uint32_t>(number_or_0(device, "id"));
    added.info.set_device_id(added.id);
    std::string_view name;
    if (device["name"].get(name) == simdjson::SUCCESS) added.info.set_name(std::string(name));
    const auto number = [&device](std::string_view key) {
      return static_cast<uint32_t>(number_or_0(device, key));
    };
    added.info.set_memory_bytes(number_or_0(device, "totalGlobalMem"));
    added.info.set_compute_major(number("computeMajor"));
    added.info.set_compute_minor(number("computeMinor"));
    added.info.set_sm_count(number("numSms"));
    added.info.set_max_threads_per_sm(number("maxThreadsPerMultiprocessor"));
    added.info.set_max_registers_per_sm(number("regsPerMultiprocessor"));
    added.info.set_max_shared_bytes_per_sm(number_or_0(device, "sharedMemPerMultiprocessor"));
    added.info.set_warp_size(number("warpSize"));
    devices.push_back(std::move(added));
  }
}

std::string file_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

}  // namespace

struct KinetoTopLevel::Parser {
  dom::parser dom;
};

KinetoTopLevel::KinetoTopLevel() : parser_(std::make_unique<Parser>()) {}
KinetoTopLevel::~KinetoTopLevel() = default;

void KinetoTopLevel::take(std::string_view key, std::string_view text) {
  if (key == "viztracer_metadata") other_tool = "VizTracer";
  if (key == "ph") is_one_event = true;
  if (key == "nodes") is_execution_trace = true;
  if (key == "schemaVersion" || key == "deviceProperties" || key == "distributedInfo") {
    kineto = true;
  }
  const bool wanted = key == "deviceProperties" || key == "distributedInfo" ||
                      key == "baseTimeNanoseconds" || key == "cupti_version" ||
                      key == "cuda_runtime_version" || key == "cuda_driver_version";
  if (!wanted) return;
  dom::element value;
  if (parser_->dom.parse(text.data(), text.size()).get(value) != simdjson::SUCCESS) return;
  if (key == "deviceProperties") {
    take_devices(value, devices);
  } else if (key == "distributedInfo") {
    int64_t number = 0;
    has_rank = value["rank"].get(number) == simdjson::SUCCESS && number >= 0;
    if (has_rank) rank = static_cast<int32_t>(number);
    world_size = static_cast<int32_t>(number_or_0(value, "world_size"));
  } else {
    const std::optional<int64_t> number = integer_of(text);
    if (!number) return;
    if (key == "baseTimeNanoseconds") base_ns = *number;
    if (key == "cupti_version") cupti_version = static_cast<uint32_t>(*number);
    if (key == "cuda_runtime_version") runtime_version = static_cast<uint32_t>(*number);
    if (key == "cuda_driver_version") driver_version = static_cast<uint32_t>(*number);
  }
}

std::string kineto_host_of_name(const std::string& path) {
  const std::string name = file_name(path);
  if (name.find(".pt.trace.json") == name.npos) return {};
  const std::string stem = name.substr(0, name.find('.'));
  const size_t underscore = stem.find_last_of('_');
  const bool has_pid = underscore != stem.npos && underscore > 0 &&
                       stem.find_first_not_of("0123456789", underscore + 1) == stem.npos;
  return has_pid ? stem.substr(0, underscore) : std::string();
}

std::optional<int32_t> kineto_rank_of_name(const std::string& path) {
  const std::string name = file_name(path);
  const size_t at = name.find("rank");
  if (at == name.npos) return std::nullopt;
  const size_t digits = name.find_first_not_of("-_ ", at + 4);
  if (digits == name.npos) return std::nullopt;
  int32_t rank = 0;
  const auto parsed = std::from_chars(name.data() + digits, name.data() + name.size(), rank);
  if (parsed.ec != std::errc() || rank < 0) return std::nullopt;
  return rank;
}

}  // namespace idlescope::read
