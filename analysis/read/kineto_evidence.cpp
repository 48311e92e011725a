#include "analysis/read/kineto_evidence.h"

#include "analysis/read/call_class.h"

namespace idlescope::read {
namespace {

constexpr Ns kShortestKernelNs = 200;
constexpr Ns kShortestCallNs = 200;
constexpr Ns kQuickLaunchNs = 500'000;

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

void KinetoEvidence::foreign_row(const KinetoEvent& event) {
  ++foreign;
  const std::string_view name = event.name;
  if (starts_with(name, "NEGOTIATE_")) horovod = true;
  if (event.category == "POSIX" || event.category == "STDIO" || event.category == "dftracer" ||
      event.category == "ai_framework") {
    dftracer = true;
  }
  if (event.category.empty() && (starts_with(name, "cu") || starts_with(name, "hip")) &&
      classify_call(name).call_class != trace::CALL_OTHER) {
    cuda_calls_without_category = true;
  }
  if (event.phase != 'X' || event.category.empty()) return;
  if (const auto found = foreign_categories.find(event.category);
      found != foreign_categories.end()) {
    ++found->second;
  } else if (foreign_categories.size() < 16) {
    foreign_categories.emplace(std::string(event.category), 1);
  }
}

void KinetoEvidence::called(const KinetoId& pid) {
  if (pid.kind == KinetoId::kAbsent) return;
  // Nearly always the process of the row before.
  if (pid.kind == last_caller_.kind && pid.number == last_caller_.number &&
      pid.text == last_caller_text_) {
    return;
  }
  last_caller_ = pid;
  last_caller_text_ = pid.text;
  last_caller_.text = {};
  ++callers_[pid.kind == KinetoId::kNumber ? std::to_string(pid.number) : std::string(pid.text)];
}

void KinetoEvidence::launched(Ns duration_ns) {
  if (duration_ns > 0) {
    ++timed_launches_;
    if (duration_ns < kShortestCallNs) ++short_launches_;
  }
  ++launches_;
  if (duration_ns < kQuickLaunchNs) ++quick_launches_;
}

void KinetoEvidence::ran_kernel(Ns duration_ns) {
  if (duration_ns <= 0) return;
  ++kernels_;
  if (duration_ns < kShortestKernelNs) ++short_kernels_;
}

}  // namespace idlescope::read
