#include "analysis/read/kineto_json.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <simdjson.h>

#include "analysis/read/decimal_time.h"
#include "analysis/read/import_builder.h"
#include "analysis/read/json_splitter.h"
#include "analysis/read/kineto_event.h"
#include "analysis/read/kineto_rows.h"
#include "analysis/read/recording.h"
#include "analysis/read/text_stream.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

namespace dom = simdjson::dom;

// NTP keeps hosts within about a millisecond; that is all that ties two ranks' files.
constexpr Ns kWallClockUncertaintyNs = 1'000'000;

struct DeviceProperties {
  uint32_t id = 0;
  trace::Device info;
};

uint64_t number_or_0(const dom::element& object, std::string_view key) {
  int64_t value = 0;
  return object[key].get(value) == simdjson::SUCCESS && value > 0 ? static_cast<uint64_t>(value)
                                                                  : 0;
}

// Top-level values beside the events.
struct TopLevel {
  bool kineto = false;     // a key that only a PyTorch profiler writes
  std::string other_tool;  // a key by which another tool is known
  std::optional<Ns> base_ns;
  bool has_rank = false;
  int32_t rank = 0;
  int32_t world_size = 0;
  uint32_t cupti_version = 0;
  uint32_t runtime_version = 0;
  uint32_t driver_version = 0;
  std::vector<DeviceProperties> devices;

  void take(std::string_view key, std::string_view text);

 private:
  void take_devices(const dom::element& list);
  dom::parser parser_;
};

void TopLevel::take_devices(const dom::element& list) {
  dom::array devices_json;
  if (list.get(devices_json) != simdjson::SUCCESS) return;
  for (const dom::element device : devices_json) {
    DeviceProperties added;
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

void TopLevel::take(std::string_view key, std::string_view text) {
  if (key == "viztracer_metadata") other_tool = "VizTracer";
  if (key == "schemaVersion" || key == "deviceProperties" || key == "distributedInfo") {
    kineto = true;
  }
  const bool wanted = key == "deviceProperties" || key == "distributedInfo" ||
                      key == "baseTimeNanoseconds" || key == "cupti_version" ||
                      key == "cuda_runtime_version" || key == "cuda_driver_version";
  if (!wanted) return;
  dom::element value;
  if (parser_.parse(text.data(), text.size()).get(value) != simdjson::SUCCESS) return;
  if (key == "deviceProperties") {
    take_devices(value);
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

std::string file_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// torch.profiler names files HOST_PID.TIME.pt.trace.json; people name them rank3.json.
std::string host_of_name(const std::string& path) {
  const std::string name = file_name(path);
  if (name.find(".pt.trace.json") == name.npos) return {};
  const std::string stem = name.substr(0, name.find('.'));
  const size_t underscore = stem.find_last_of('_');
  const bool has_pid = underscore != stem.npos && underscore > 0 &&
                       stem.find_first_not_of("0123456789", underscore + 1) == stem.npos;
  return has_pid ? stem.substr(0, underscore) : std::string();
}

std::optional<int32_t> rank_of_name(const std::string& path) {
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

class KinetoImport : JsonSplitter::Sink {
 public:
  KinetoImport(std::string_view bytes, const std::string& path, Recording& recording)
      : text_(bytes), recording_(recording), builder_(recording, path), rows_(builder_) {}

  Expected<void> run() {
    const JsonSplitter::Result result = splitter_.split(text_, *this);
    if (text_.end() == TextStream::End::kBomb) {
      return fault(messages::kExpandsTooMuch, {{"ratio", std::to_string(kMaxInflateRatio)}});
    }
    if (auto checked = check_origin(result); !checked) return checked;
    report(result);
    rows_.finish();
    describe_process();
    builder_.finish();
    recording_.origin = Origin::kKineto;
    recording_.grain_ns = std::max(recording_.grain_ns, grain_ns());
    return {};
  }

 private:
  const std::string& path() const { return builder_.path(); }

  tl::unexpected<Fault> fault(const messages::Message& message, messages::Values values) const {
    values.insert(values.begin(), {"path", path()});
    return tl::unexpected(Fault{message, std::move(values)});
  }
  tl::unexpected<Fault> foreign(std::string what, std::string todo) const {
    return fault(messages::kForeignFile, {{"what", std::move(what)}, {"todo", std::move(todo)}});
  }

  bool event(std::string_view object, uint64_t offset) override {
    const KinetoEvent& parsed = parser_.parse(object);
    if (!parsed.ok) {
      if (bad_events_++ == 0) first_bad_offset_ = offset;
      return true;
    }
    if (parsed.repeated_key) ++repeated_keys_;
    rows_.take(parsed);
    return true;
  }

  bool value(std::string_view key, std::string_view text) override {
    top_.take(key, text);
    return true;
  }

  Expected<void> check_origin(const JsonSplitter::Result& result) const;
  void report(const JsonSplitter::Result& result);
  void describe_process();

  Ns grain_ns() const {
    Ns grain = 1000;
    for (int i = 0; i < rows_.evidence().max_decimals && grain > 1; ++i) grain /= 10;
    return grain;
  }

  TextStream text_;
  Recording& recording_;
  ImportBuilder builder_;
  KinetoRows rows_;
  TopLevel top_;
  JsonSplitter splitter_;
  KinetoEventParser parser_;
  uint64_t bad_events_ = 0;
  uint64_t first_bad_offset_ = 0;
  uint64_t repeated_keys_ = 0;
};

Expected<void> KinetoImport::check_origin(const JsonSplitter::Result& result) const {
  const KinetoRows::Evidence& evidence = rows_.evidence();
  constexpr const char* kRecord =
      "Only PyTorch profiler traces are read; or record the job: idlescope record -- CMD";
  if (!result.is_json || !result.has_events) {
    return fault(messages::kNotATrace,
                 {{"offset", std::to_string(result.is_json ? result.end_offset : 0)},
                  {"expected", "\"traceEvents\" or a list of events"},
                  {"found", result.is_json ? "JSON without them" : "no JSON"}});
  }
  const bool other_accelerator = evidence.unsupported > 0 && builder_.device_ops() == 0;
  if (evidence.known > 0 && evidence.known * 20 >= evidence.foreign && !other_accelerator) {
    return {};
  }
  if (other_accelerator) {
    return foreign(fmt::format("a PyTorch profile of an accelerator that is no CUDA or ROCm GPU "
                               "(\"{}\" rows)",
                               evidence.unsupported_category),
                   "idlescope explains idle GPUs only.");
  }
  if (evidence.dftracer) {
    return foreign("a DFTracer file: the job's I/O calls, no GPU", kRecord);
  }
  if (evidence.horovod) {
    return foreign("a Horovod timeline: its tensors' phases, no GPU kernels", kRecord);
  }
  if (evidence.tensorflow) {
    return foreign("a TensorFlow or JAX profiler trace", kRecord);
  }
  if (!top_.other_tool.empty()) return foreign("a " + top_.other_tool + " trace", kRecord);
  if (evidence.cuda_calls_without_category) {
    return foreign("a list of CUDA calls by another tool, without kernels and without categories",
                   kRecord);
  }
  if (top_.kineto || (evidence.known == 0 && evidence.foreign == 0)) {
    return fault(messages::kImportEmpty, {});
  }
  return foreign("a Chrome trace, but not of the PyTorch profiler", kRecord);
}

void KinetoImport::report(const JsonSplitter::Result& result) {
  const KinetoRows::Evidence& evidence = rows_.evidence();
  Anomalies& anomalies = builder_.anomalies();
  if (text_.end() == TextStream::End::kTruncated || text_.end() == TextStream::End::kDamaged) {
    recording_.truncated = true;
    anomalies.add(messages::kGzipDamaged,
                  {{"path", path()}, {"offset", std::to_string(text_.delivered())}}, 1, true);
  } else if (!result.complete) {
    recording_.truncated = true;
    anomalies.add(messages::kJsonTruncated,
                  {{"path", path()}, {"offset", std::to_string(result.end_offset)}}, 1, true);
  }
  const uint64_t bad = bad_events_ + result.broken_events + result.oversized;
  if (bad > 0) {
    anomalies.add(messages::kJsonBadEvents,
                  {{"path", path()},
                   {"count", std::to_string(bad)},
                   {"offset", std::to_string(first_bad_offset_)}},
                  bad, true);
  }
  anomalies.add_counted(messages::kJsonRepeatedKeys, path(), repeated_keys_);
  anomalies.add_counted(messages::kJsonStray, path(), result.stray_bytes + result.missing_commas);
  anomalies.add_counted(messages::kImportBadNumbers, path(),
                        evidence.bad_numbers + evidence.no_duration, true);
  anomalies.add_counted(messages::kImportHugeIds, path(), evidence.huge_ids);
  anomalies.add_counted(messages::kImportNoKernels, path(), evidence.missing_gpu, true);
  for (const auto& [category, count] : evidence.foreign_categories) {
    anomalies.add(messages::kImportUnknownRows,
                  {{"path", path()}, {"count", std::to_string(count)}, {"category", category}},
                  count);
  }
}

void KinetoImport::describe_process() {
  Process& process = builder_.process();
  trace::Process& identity = *process.header.mutable_process();
  process.header.set_tool("PyTorch profiler");
  identity.set_pid(rows_.main_pid());
  identity.set_host(host_of_name(path()));
  identity.set_has_rank(top_.has_rank);
  identity.set_rank(top_.rank);
  identity.set_world_size(top_.world_size);
  if (const auto rank = rank_of_name(path()); rank && !top_.has_rank) {
    identity.set_has_rank(true);
    identity.set_rank(*rank);
  }
  for (const DeviceProperties& properties : top_.devices) {
    for (Device& device : process.devices) {
      if (device.info.device_id() == properties.id) device.info = properties.info;
    }
  }
  builder_.set_versions(top_.cupti_version, top_.runtime_version, top_.driver_version);
  // Since 2024 stamps are relative to a base; before that they are µs since 1970. Both kinds
  // may come from ranks of one job, so all are put on the wall clock.
  if (top_.base_ns && *top_.base_ns > 0) builder_.shift_times(*top_.base_ns);
  constexpr Ns kYear2001Ns = Ns{1'000'000'000} * 1'000'000'000;
  const Ns at_ns = builder_.first_ns();
  if (at_ns > kYear2001Ns) {
    trace::ClockPair& pair = *process.header.mutable_clock();
    pair.set_monotonic_ns(at_ns);
    pair.set_realtime_ns(at_ns);
    pair.set_uncertainty_ns(kWallClockUncertaintyNs);
    process.clock_pairs.push_back(pair);
  }
}

}  // namespace

Expected<void> import_kineto(std::string_view bytes, const std::string& path,
                             Recording& recording) {
  return KinetoImport(bytes, path, recording).run();
}

}  // namespace idlescope::read
