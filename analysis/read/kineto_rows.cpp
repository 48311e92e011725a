#include "analysis/read/kineto_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <tuple>

#include "analysis/read/call_class.h"
#include "analysis/read/decimal_time.h"
#include "analysis/read/kineto_names.h"
#include "analysis/read/plausible_time.h"

namespace idlescope::read {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

// "torch/serialization.py(941): save": torch.save, the checkpoint that scripts write.
bool is_torch_save(std::string_view frame) {
  return frame.find("torch/serialization.py(") != frame.npos && ends_with(frame, ": save");
}

int64_t bytes_of_type(std::string_view dtype) {
  if (dtype == "Float" || dtype == "Int" || dtype == "float") return 4;
  if (dtype == "Double" || dtype == "Long") return 8;
  if (dtype == "Half" || dtype == "BFloat16") return 2;
  return dtype.empty() ? 0 : 1;
}

}  // namespace

bool KinetoRows::times(const KinetoEvent& event, Ns& begin_ns, Ns& end_ns) {
  const auto bad = [this](std::string_view text) {
    if (evidence_.bad_numbers++ == 0) evidence_.bad_number = text.substr(0, 40);
    return false;
  };
  const std::optional<DecimalTime> begin = parse_microseconds(event.ts);
  if (!begin) return bad(event.ts);
  if (!event.end_ts.empty()) {
    const std::optional<DecimalTime> end = parse_microseconds(event.end_ts);
    if (!end) return bad(event.end_ts);
    end_ns = end->ns;
  } else if (event.dur.empty()) {
    ++evidence_.no_duration;
    return false;
  } else {
    const std::optional<DecimalTime> duration = parse_microseconds(event.dur);
    if (!duration || __builtin_add_overflow(begin->ns, duration->ns, &end_ns)) {
      return bad(event.dur);
    }
  }
  ++evidence_.timed;
  evidence_.max_decimals = std::max(evidence_.max_decimals, begin->decimals);
  begin_ns = begin->ns;
  return true;
}

// A kernel without a name is still time of the GPU; a call or range without one says nothing.
bool KinetoRows::has_name(const KinetoEvent& event) {
  if (event.name.empty()) ++evidence_.nameless;
  return !event.name.empty();
}

uint32_t KinetoRows::thread(const KinetoEvent& event) {
  if (event.tid.kind == KinetoId::kNumber && event.tid.number >= 0 &&
      event.tid.number <= UINT32_MAX) {
    return static_cast<uint32_t>(event.tid.number);
  }
  // Words and ids beyond 32 bits get ids of their own at the far end.
  std::string key = event.tid.kind == KinetoId::kNumber ? std::to_string(event.tid.number)
                                                        : std::string(event.tid.text);
  const auto [entry, inserted] = odd_threads_.try_emplace(
      std::move(key), UINT32_MAX - 1 - static_cast<uint32_t>(odd_threads_.size()));
  return entry->second;
}

uint32_t KinetoRows::device_of(const KinetoEvent& event) const {
  if (event.device && *event.device >= 0 && *event.device < 1 << 16) {
    return static_cast<uint32_t>(*event.device);
  }
  if (event.pid.kind == KinetoId::kNumber && event.pid.number >= 0 && event.pid.number < 1 << 16) {
    return static_cast<uint32_t>(event.pid.number);
  }
  return 0;
}

uint32_t KinetoRows::stream_of(const KinetoEvent& event) const {
  if (event.stream) return static_cast<uint32_t>(*event.stream);
  if (event.tid.kind == KinetoId::kNumber) return static_cast<uint32_t>(event.tid.number);
  // "stream 7"
  const size_t digits = event.tid.text.find_last_not_of("0123456789");
  const std::string_view number =
      digits == event.tid.text.npos ? event.tid.text : event.tid.text.substr(digits + 1);
  uint32_t stream = 0;
  std::from_chars(number.data(), number.data() + number.size(), stream);
  return stream;
}

uint32_t KinetoRows::correlation_of(const KinetoEvent& event) {
  if (!event.correlation || *event.correlation == 0) return 0;
  if (*event.correlation < 0 || *event.correlation > UINT32_MAX) {
    ++evidence_.huge_ids;
    return 0;
  }
  return static_cast<uint32_t>(*event.correlation);
}

void KinetoRows::take(const KinetoEvent& event) {
  if (event.phase == 'M') {
    take_metadata(event);
    return;
  }
  const RowKind kind = row_kind(event.category);
  if (event.phase != 'X') {
    // Flows and instants carry nothing that the rows they join do not have.
    if (kind == RowKind::kForeign) evidence_.foreign_row(event);
    return;
  }
  switch (kind) {
    case RowKind::kCpuOp:
    case RowKind::kAnnotation:
    case RowKind::kPython:
      take_host_range(event, kind);
      break;
    case RowKind::kCall:
      take_call(event, false);
      break;
    case RowKind::kDriverCall:
      take_call(event, true);
      break;
    case RowKind::kKernel:
    case RowKind::kCopy:
    case RowKind::kMemset:
      take_op(event, kind);
      break;
    case RowKind::kSync:
      take_sync(event);
      break;
    case RowKind::kOverhead:
      take_overhead(event);
      break;
    case RowKind::kTrace: {
      Ns begin_ns = 0;
      Ns end_ns = 0;
      if (times(event, begin_ns, end_ns)) builder_.window_span(begin_ns, end_ns);
      break;
    }
    case RowKind::kUnsupported:
      if (evidence_.unsupported++ == 0) evidence_.unsupported_category = event.category;
      break;
    case RowKind::kMissingGpu:
      ++evidence_.missing_gpu;
      break;
    case RowKind::kIgnored:
      break;
    case RowKind::kForeign:
      if (event.category.empty() && event.pid.kind == KinetoId::kText &&
          (event.pid.text == "CPU functions" || event.pid.text == "CUDA functions")) {
        take_legacy(event);
      } else {
        evidence_.foreign_row(event);
      }
  }
}

void KinetoRows::take_metadata(const KinetoEvent& event) {
  if (event.name == "process_name" &&
      (starts_with(event.args_name, "/device:") || starts_with(event.args_name, "/host:"))) {
    evidence_.tensorflow = true;
  }
  if (event.category == "dftracer") evidence_.dftracer = true;
  if (event.name == "thread_name" && !event.args_name.empty() &&
      event.pid.kind == KinetoId::kNumber && event.pid.number >= 1 << 16) {
    builder_.process().thread_names.emplace(thread(event), std::string(event.args_name));
  }
}

// torch.autograd.profiler before Kineto: no categories, the side is in the pid.
void KinetoRows::take_legacy(const KinetoEvent& event) {
  Ns begin_ns = 0;
  Ns end_ns = 0;
  ++evidence_.known;
  if (!times(event, begin_ns, end_ns)) return;
  if (event.pid.text == "CPU functions") {
    add_host_range(event, /*framework=*/true, begin_ns, end_ns);
    return;
  }
  OpDescriptor op;
  op.kind = trace::OP_KERNEL;
  op.name = builder_.strings().add(event.name);
  const uint32_t device_id = stream_of(event);  // its tid is the device
  op.device = builder_.device(device_id);
  op.stream = builder_.stream(0, 0, device_id);
  builder_.saw(trace::KIND_KERNEL);
  builder_.add_op(builder_.op_descriptor(op), begin_ns, end_ns, 0);
}

void KinetoRows::take_host_range(const KinetoEvent& event, RowKind kind) {
  ++evidence_.known;
  Ns begin_ns = 0;
  Ns end_ns = 0;
  if (!has_name(event) || !times(event, begin_ns, end_ns)) return;
  const uint32_t thread_id = thread(event);
  if (event.pid.kind == KinetoId::kNumber) ++rows_by_pid_[event.pid.number];
  if (kind == RowKind::kPython) {
    builder_.saw(trace::KIND_PYTHON_RANGE);
    builder_.add_range(event.name, trace::RANGE_PYTHON, thread_id, begin_ns, end_ns);
    if (is_torch_save(event.name)) {
      HostEvent save;
      save.kind = trace::EVENT_CHECKPOINT;
      save.thread_id = thread_id;
      save.begin_ns = begin_ns;
      save.end_ns = end_ns;
      builder_.add_event(save);
    }
    return;
  }
  add_host_range(event, kind == RowKind::kCpuOp, begin_ns, end_ns);
}

// An annotation, or an operator that may be one: before 2021, and today where PyTorch is built
// without Kineto, the marks of the profiler itself are operator rows.
void KinetoRows::add_host_range(const KinetoEvent& event, bool framework, Ns begin_ns, Ns end_ns) {
  const uint32_t thread_id = thread(event);
  if (marks_.take(event.name, thread_id, begin_ns, end_ns) == ImportMarks::Taken::kWhole) return;
  const bool is_step = starts_with(event.name, "ProfilerStep#");
  const trace::RangeCategory category = kineto_annotation_category(event.name);
  builder_.saw(trace::KIND_PYTHON_RANGE);
  builder_.add_range(
      event.name,
      framework && category == trace::RANGE_USER && !is_step ? trace::RANGE_FRAMEWORK_OP : category,
      thread_id, begin_ns, end_ns);
}

void KinetoRows::take_call(const KinetoEvent& event, bool driver) {
  ++evidence_.known;
  Ns begin_ns = 0;
  Ns end_ns = 0;
  if (!has_name(event) || !times(event, begin_ns, end_ns)) return;
  if (event.pid.kind == KinetoId::kNumber) ++rows_by_pid_[event.pid.number];
  evidence_.called(event.pid);
  const CallName name = classify_call(event.name);
  if (name.call_class == trace::CALL_LAUNCH) evidence_.launched(end_ns - begin_ns);
  CallDescriptor call;
  call.call_class = name.call_class;
  call.copy_kind = name.copy_kind;
  call.name = builder_.strings().add(event.name);
  call.driver = driver || name.driver;
  call.thread_id = thread(event);
  if (event.bytes && *event.bytes > 0) call.bytes = static_cast<uint64_t>(*event.bytes);
  builder_.add_call(builder_.call_descriptor(call), begin_ns, end_ns, correlation_of(event));
  // CUPTI's runtime domain records every call of these classes; driver rows are few chosen
  // functions, so a module load that is not there says nothing.
  if (!call.driver) {
    for (const trace::Kind kind :
         {trace::KIND_CALL_LAUNCH, trace::KIND_CALL_COPY, trace::KIND_CALL_SYNC,
          trace::KIND_CALL_ALLOC, trace::KIND_CALL_GRAPH, trace::KIND_CALL_OTHER}) {
      builder_.saw(kind);
    }
  }
  if (call.call_class == trace::CALL_LAUNCH) builder_.saw(trace::KIND_CALL_LAUNCH);
  if (call.call_class == trace::CALL_EVENT_RECORD) builder_.saw(trace::KIND_CALL_EVENT);
  if (call.call_class == trace::CALL_MODULE_LOAD) builder_.saw(trace::KIND_CALL_MODULE);
}

void KinetoRows::take_op(const KinetoEvent& event, RowKind kind) {
  ++evidence_.known;
  Ns begin_ns = 0;
  Ns end_ns = 0;
  if (!times(event, begin_ns, end_ns)) return;
  const CopyName copy = parse_copy_name(event.name);
  OpDescriptor op;
  op.name = builder_.strings().add(event.name);
  if (kind == RowKind::kMemset || copy.is_memset) {
    op.kind = trace::OP_MEMSET;
    builder_.saw(trace::KIND_MEMSET);
  } else if (kind == RowKind::kCopy || copy.is_copy) {
    op.kind = trace::OP_MEMCPY;
    op.copy_kind = copy.copy_kind;
    op.src_kind = copy.src_kind;
    op.dst_kind = copy.dst_kind;
    builder_.saw(trace::KIND_MEMCPY);
  } else {
    op.kind = trace::OP_KERNEL;
    builder_.saw(trace::KIND_KERNEL);
    evidence_.ran_kernel(end_ns - begin_ns);
  }
  const uint32_t device_id = device_of(event);
  op.device = builder_.device(device_id);
  op.context_id = event.context ? static_cast<uint32_t>(*event.context) : 0;
  op.stream = builder_.stream(op.context_id, stream_of(event), device_id);
  std::copy(std::begin(event.grid), std::end(event.grid), std::begin(op.grid));
  std::copy(std::begin(event.block), std::end(event.block), std::begin(op.block));
  const auto positive = [](const std::optional<int64_t>& value) {
    return value && *value > 0 ? static_cast<uint64_t>(*value) : uint64_t{0};
  };
  op.registers_per_thread = static_cast<uint32_t>(positive(event.registers));
  op.shared_bytes = static_cast<uint32_t>(positive(event.shared_bytes));
  op.bytes = positive(event.bytes);
  op.graph_id = static_cast<uint32_t>(positive(event.graph_id));
  op.graph_node_id = positive(event.graph_node_id);
  if (op.graph_node_id != 0) builder_.saw(trace::KIND_GRAPH_NODE);
  builder_.add_op(builder_.op_descriptor(op), begin_ns, end_ns, correlation_of(event));
  if (!event.collective.empty()) take_collective(event, begin_ns, end_ns);
}

void KinetoRows::take_collective(const KinetoEvent& event, Ns begin_ns, Ns end_ns) {
  if (!plausible_span(begin_ns, end_ns)) return;
  Collective collective;
  collective.name = builder_.strings().add(event.collective);
  int64_t bytes = 0;
  const bool fits =
      !__builtin_mul_overflow(event.elements.value_or(0), bytes_of_type(event.dtype), &bytes);
  collective.bytes = fits && bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
  const int64_t ranks = event.group_size.value_or(0);
  collective.ranks = ranks > 0 && ranks <= UINT32_MAX ? static_cast<uint32_t>(ranks) : 0;
  collective.correlation = correlation_of(event);
  collective.window = 0;
  collective.begin_ns = begin_ns;
  collective.end_ns = end_ns;
  std::string group(event.process_group);
  group += '\n';
  group += event.group_ranks;
  collectives_.push_back({collective, std::move(group)});
}

void KinetoRows::take_sync(const KinetoEvent& event) {
  ++evidence_.known;
  const uint32_t correlation = correlation_of(event);
  if (correlation == 0) return;
  if (event.stream && *event.stream > 0 && event.name == "Stream Sync") {
    const uint32_t context = event.context ? static_cast<uint32_t>(*event.context) : 0;
    builder_.call_stream(correlation, context, stream_of(event));
  }
  if (event.wait_record_correlation && *event.wait_record_correlation > 0 &&
      *event.wait_record_correlation <= UINT32_MAX) {
    builder_.add_edge(static_cast<uint32_t>(*event.wait_record_correlation), correlation);
  }
}

void KinetoRows::take_overhead(const KinetoEvent& event) {
  ++evidence_.known;
  Ns begin_ns = 0;
  Ns end_ns = 0;
  if (!times(event, begin_ns, end_ns)) return;
  builder_.saw(trace::KIND_OVERHEAD);
  const uint32_t thread_id =
      event.tid.kind == KinetoId::kNumber && event.tid.number > 0 && event.tid.number <= UINT32_MAX
          ? static_cast<uint32_t>(event.tid.number)
          : 0;
  builder_.add_overhead({kineto_overhead_kind(event.name), thread_id, begin_ns, end_ns});
}

int64_t KinetoRows::main_pid() const {
  int64_t best = 0;
  uint64_t most = 0;
  for (const auto& [pid, count] : rows_by_pid_) {
    if (count > most) {
      most = count;
      best = pid;
    }
  }
  return best;
}

void KinetoRows::finish() {
  marks_.finish();
  std::stable_sort(collectives_.begin(), collectives_.end(),
                   [](const RawCollective& a, const RawCollective& b) {
                     return a.collective.begin_ns < b.collective.begin_ns;
                   });
  std::map<std::string, uint64_t> sequences;
  for (RawCollective& raw : collectives_) {
    raw.collective.communicator = std::hash<std::string>{}(raw.group);
    raw.collective.sequence = sequences[raw.group]++;
    builder_.process().collectives.push_back(raw.collective);
  }
}

}  // namespace idlescope::read
