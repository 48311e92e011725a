#include "analysis/read/kineto_names.h"

namespace idlescope::read {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

struct CategoryName {
  std::string_view text;
  RowKind kind;
};

// Left to right: today's names first. 2020-21 wrote Operator/Runtime/Kernel/Memcpy/async,
// 2022 a mixture, 2023 and later cpu_op/cuda_runtime/kernel/gpu_memcpy/ac2g.
constexpr CategoryName kCategories[] = {
    {"cpu_op", RowKind::kCpuOp},
    {"python_function", RowKind::kPython},
    {"ac2g", RowKind::kIgnored},
    {"cuda_runtime", RowKind::kCall},
    {"kernel", RowKind::kKernel},
    {"cpu_instant_event", RowKind::kIgnored},
    {"user_annotation", RowKind::kAnnotation},
    {"cuda_driver", RowKind::kDriverCall},
    {"gpu_memcpy", RowKind::kCopy},
    {"gpu_memset", RowKind::kMemset},
    {"gpu_user_annotation", RowKind::kIgnored},
    {"fwdbwd", RowKind::kIgnored},
    {"cuda_sync", RowKind::kSync},
    {"overhead", RowKind::kOverhead},
    {"Trace", RowKind::kTrace},
    {"Operator", RowKind::kCpuOp},
    {"Runtime", RowKind::kCall},
    {"Kernel", RowKind::kKernel},
    {"Memcpy", RowKind::kCopy},
    {"Memset", RowKind::kMemset},
    {"async", RowKind::kIgnored},
    {"async_gpu", RowKind::kIgnored},
    {"async_cpu_to_gpu", RowKind::kIgnored},
    {"forward_backward", RowKind::kIgnored},
    {"external_correlation", RowKind::kIgnored},
    {"cpu_to_cuda", RowKind::kIgnored},
    {"cuda_event", RowKind::kIgnored},
    {"gpu_pm_counter", RowKind::kIgnored},
    {"collective_comm", RowKind::kIgnored},
    {"cuda_profiler_range", RowKind::kMissingGpu},
    {"hip_runtime", RowKind::kCall},
    {"hip_driver", RowKind::kDriverCall},
    {"xpu_runtime", RowKind::kCall},
    {"xpu_driver", RowKind::kDriverCall},
    {"xpu_sync", RowKind::kIgnored},
    {"mtia_runtime", RowKind::kUnsupported},
    {"mtia_ccp_events", RowKind::kUnsupported},
    {"mtia_workloadd", RowKind::kUnsupported},
    {"mtia_insight", RowKind::kUnsupported},
    {"mtia_counters", RowKind::kUnsupported},
    {"hpu_op", RowKind::kUnsupported},
    {"privateuse1_runtime", RowKind::kUnsupported},
    {"privateuse1_driver", RowKind::kUnsupported},
    {"glow_runtime", RowKind::kUnsupported},
};

}  // namespace

RowKind row_kind(std::string_view category) {
  for (const CategoryName& name : kCategories) {
    if (name.text.size() == category.size() && name.text == category) return name.kind;
  }
  // The Chrome format allows several, "cuda_runtime,gpu": the first that is known.
  for (size_t comma = category.find(','); comma != category.npos; comma = category.find(',')) {
    if (const RowKind kind = row_kind(category.substr(0, comma)); kind != RowKind::kForeign) {
      return kind;
    }
    category.remove_prefix(comma + 1);
    if (category.find(',') == category.npos) return row_kind(category);
  }
  return RowKind::kForeign;
}

trace::OverheadKind kineto_overhead_kind(std::string_view name) {
  if (name == "Buffer Flush") return trace::OVERHEAD_BUFFER_FLUSH;
  if (name == "Activity Buffer Request") return trace::OVERHEAD_ACTIVITY_BUFFER_REQUEST;
  if (name == "Instrumentation") return trace::OVERHEAD_INSTRUMENTATION;
  if (name == "Resource") return trace::OVERHEAD_RESOURCE;
  if (name == "Lazy Function Loading") return trace::OVERHEAD_LAZY_FUNCTION_LOADING;
  if (name == "Command Buffer Full") return trace::OVERHEAD_COMMAND_BUFFER_FULL;
  if (name == "Driver Compiler") return trace::OVERHEAD_DRIVER_COMPILER;
  if (name.find("Module Loading") != name.npos) return trace::OVERHEAD_MODULE_LOADING;
  return trace::OVERHEAD_UNKNOWN;
}

trace::RangeCategory kineto_annotation_category(std::string_view name) {
  if (starts_with(name, "Optimizer.step#")) return trace::RANGE_OPTIMIZER;
  if (starts_with(name, "Optimizer.zero_grad#")) return trace::RANGE_ZERO_GRAD;
  if (starts_with(name, "DistributedDataParallel.forward")) return trace::RANGE_FORWARD;
  if (starts_with(name, "gloo:") || starts_with(name, "mpi:")) return trace::RANGE_COMMUNICATION;
  if (ends_with(name, "(dynamo_timed)")) return trace::RANGE_COMPILE;
  return trace::RANGE_USER;
}

}  // namespace idlescope::read
