// Published rules of other tools, applied to the same recording: our emulations, for
// comparison only.
//
// TensorBoard plugin (tb_plugin/torch_tb_profiler, pytorch/kineto before 2026-04): priority
// subtraction Kernel > Memcpy > Memset > Communication > Runtime > DataLoader > Other; advice
// if DataLoader > 5 %, Communication > 10 %, GPU utilisation < 50 % of the step.
// HTA (hta/analyzers/breakdown_analysis.py): per stream; host wait if the next op was launched
// after the previous ended, kernel wait if the gap is below 30 us, other.
// nsys-ai (skills/builtins/gpu_idle_gaps.py): per stream gaps of at least 1 ms; the five
// longest get a cause by the first API name found in them: sync, copy, set, launch, none.
#pragma once

#include <vector>

#include "tests/accuracy/score.h"

namespace idlescope::model {
struct Model;
}

namespace idlescope::accuracy {

// Labels of the device's time without compute, in time order.
std::vector<Stretch> peer_labels(Tool tool, const model::Model& model, uint32_t device);

// Their advice as a class: what they would name first; kBusy: nothing.
Class peer_verdict(Tool tool, const std::vector<Stretch>& labels, int64_t analysed_ns);

}  // namespace idlescope::accuracy
