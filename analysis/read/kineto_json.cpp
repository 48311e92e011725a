#include "analysis/read/kineto_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "analysis/read/import_builder.h"
#include "analysis/read/json_splitter.h"
#include "analysis/read/kineto_event.h"
#include "analysis/read/kineto_pairs.h"
#include "analysis/read/kineto_rows.h"
#include "analysis/read/kineto_top_level.h"
#include "analysis/read/recording.h"
#include "analysis/read/text_stream.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

// NTP keeps hosts within about a millisecond; that is all that ties two ranks' files.
constexpr Ns kWallClockUncertaintyNs = 1'000'000;

class KinetoImport : JsonSplitter::Sink {
 public:
  KinetoImport(TextStream& text, const std::string& path, Recording& recording)
      : text_(text), recording_(recording), builder_(recording, path), rows_(builder_) {}

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
    if (parsed.phase == 'B' && row_kind(parsed.category) != RowKind::kForeign) {
      pairs_.open(parsed, object);
    } else if (parsed.phase == 'E') {
      close(parsed);
    } else {
      rows_.take(parsed);
    }
    return true;
  }

  bool value(std::string_view key, std::string_view text) override {
    top_.take(key, text);
    return true;
  }

  void close(const KinetoEvent& end) {
    const std::string end_ts(end.ts);
    const std::optional<std::string> text = pairs_.close(end);
    if (!text) return;
    rows_.take(parser_.parse_whole(*text, end_ts));
  }

  Expected<void> check_origin(const JsonSplitter::Result& result) const;
  Expected<void> check_rows() const;
  tl::unexpected<Fault> not_a_profile(const JsonSplitter::Result& result) const;
  void report(const JsonSplitter::Result& result);
  void describe_process();

  Ns grain_ns() const {
    Ns grain = 1000;
    for (int i = 0; i < rows_.evidence().max_decimals && grain > 1; ++i) grain /= 10;
    return grain;
  }

  TextStream& text_;
  Recording& recording_;
  ImportBuilder builder_;
  KinetoRows rows_;
  KinetoTopLevel top_;
  KinetoPairs pairs_;
  JsonSplitter splitter_;
  KinetoEventParser parser_;
  uint64_t bad_events_ = 0;
  uint64_t first_bad_offset_ = 0;
  uint64_t repeated_keys_ = 0;
};

constexpr const char* kRecord =
    "Only PyTorch profiler traces are read; or record the job: idlescope record -- CMD";

tl::unexpected<Fault> KinetoImport::not_a_profile(const JsonSplitter::Result& result) const {
  if (top_.is_execution_trace) {
    return foreign("a PyTorch execution trace: its operators, without times of the GPU", kRecord);
  }
  if (top_.is_one_event) {
    return foreign("a list of events, one JSON object a line",
                   "A Chrome trace is one object or one array. " + std::string(kRecord));
  }
  const char* found = "no JSON";
  if (result.is_json) found = result.bare_array ? "a list without one" : "JSON without them";
  return fault(messages::kNotATrace,
               {{"offset", std::to_string(result.is_json ? result.end_offset : 0)},
                {"expected", "\"traceEvents\" or a list of events"},
                {"found", found}});
}

Expected<void> KinetoImport::check_origin(const JsonSplitter::Result& result) const {
  const KinetoEvidence& evidence = rows_.evidence();
  const bool list_of_others = result.bare_array && result.events == 0 && result.stray_bytes > 0;
  if (!result.is_json || !result.has_events || list_of_others) return not_a_profile(result);
  const bool other_accelerator = evidence.unsupported > 0 && builder_.device_ops() == 0;
  if (evidence.known > 0 && evidence.known * 20 >= evidence.foreign && !other_accelerator) {
    return check_rows();
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

// A PyTorch profile whose rows would give a false verdict, or none.
Expected<void> KinetoImport::check_rows() const {
  const KinetoEvidence& evidence = rows_.evidence();
  if (evidence.timed == 0 && evidence.bad_numbers + evidence.no_duration > 0) {
    return fault(messages::kImportNoTimes,
                 {{"count", std::to_string(evidence.bad_numbers + evidence.no_duration)},
                  {"found", evidence.bad_number.empty() ? "none" : evidence.bad_number}});
  }
  if (evidence.calling_processes() > 1) {
    return fault(messages::kImportMerged,
                 {{"count", std::to_string(evidence.calling_processes())}});
  }
  if (evidence.times_too_short()) return fault(messages::kImportTimeUnit, {});
  return {};
}

void KinetoImport::report(const JsonSplitter::Result& result) {
  const KinetoEvidence& evidence = rows_.evidence();
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
  anomalies.add_counted(messages::kImportNameless, path(), evidence.nameless, true);
  anomalies.add_counted(messages::kImportUnpaired, path(), pairs_.unmatched(), true);
  if (evidence.times_too_long()) {
    anomalies.add(messages::kImportLongTimes, {{"path", path()}}, 1, true);
  }
  if (result.trailing) {
    anomalies.add(messages::kJsonTrailing,
                  {{"path", path()}, {"offset", std::to_string(result.end_offset)}}, 1, true);
  }
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
  identity.set_host(kineto_host_of_name(path()));
  identity.set_has_rank(top_.has_rank);
  identity.set_rank(top_.rank);
  identity.set_world_size(top_.world_size);
  if (const auto rank = kineto_rank_of_name(path()); rank && !top_.has_rank) {
    identity.set_has_rank(true);
    identity.set_rank(*rank);
  }
  for (const KinetoTopLevel::DeviceProperties& properties : top_.devices) {
    for (Device& device : process.devices) {
      if (device.info.device_id() == properties.id) device.info = properties.info;
    }
  }
  builder_.set_versions(top_.cupti_version, top_.runtime_version, top_.driver_version);
  // Since 2024 stamps are relative to a base; before that they are µs since 1970. Both kinds
  // may come from ranks of one job, so all are put on the wall clock.
  constexpr Ns kYear2001Ns = Ns{1'000'000'000} * 1'000'000'000;
  if (top_.base_ns && builder_.first_ns() < kYear2001Ns) {
    if (*top_.base_ns < 0 || !builder_.shift_times(*top_.base_ns)) {
      builder_.anomalies().add(messages::kImportBaseTime,
                               {{"path", path()}, {"value", std::to_string(*top_.base_ns)}});
    }
  }
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
  TextStream text(bytes);
  return KinetoImport(text, path, recording).run();
}

Expected<void> import_kineto_pieces(TextStream::Source pieces, uint64_t file_bytes,
                                    const std::string& path, Recording& recording) {
  TextStream text(std::move(pieces), file_bytes);
  return KinetoImport(text, path, recording).run();
}

}  // namespace idlescope::read
