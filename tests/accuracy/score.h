// One recording, scored: what the analyzer says against what truth.pb says.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/accuracy/labelled_time.h"

namespace idlescope::accuracy {

// Tools whose labels are compared; the last three are our emulations of published rules.
enum class Tool : uint8_t { kIdlescope, kTensorBoard, kHta, kNsysAi };
inline constexpr size_t kTools = 4;
const char* tool_name(Tool tool);

struct ToolScore {
  Confusion confusion{};  // ns over the analysed steps, divided by their length
  bool top1 = false;
  bool false_alarm = false;  // traps: a verdict above 5 % of the step that is none
  std::string verdict;
};

struct Score {
  std::string name;
  std::string group;  // single, mix, trap, removed
  std::string profile;
  std::string cause;    // first injected cause, or the trap's name
  std::string fault;    // could not be read
  bool scored = false;  // has a device and analysed time
  std::string true_verdict;
  std::array<ToolScore, kTools> tools;
  double share_error = 0;  // of the true verdict's share, in points of the step
  double worst_share_error = 0;
  bool has_limiter = false;
  bool limiter_right = false;
  std::string limiter;  // predicted
  std::string true_limiter;
  double step_error = 0;  // |true steps / predicted steps - 1| over the same time
  // A step may begin anywhere in the loop (at the optimizer's end, at next()): a predicted
  // step is right if it holds exactly one true boundary, for the best of four phases.
  uint64_t right_steps = 0;
  uint64_t predicted_steps = 0;
  uint64_t true_steps = 0;
  bool has_steps = false;
  double coverage = 0;  // analysed time / time in windows
  double unknown_of_absent = 0;
  double absent = 0;  // time without compute, of the analysed
  bool cannot_tell = false;
  bool abstained = false;  // removed: said what is missing, claimed none of it
  double claimed = 0;      // removed: share claimed of leaves whose evidence is gone
};

Score score_recording(const std::string& directory);

}  // namespace idlescope::accuracy
