// The tables of one device: leaves, kernels, copies, calls, launching.
//
// In: a DevicePass. Out: the parts of Diagnosis that are about that device. Only work in the
// analysed spans counts.
#pragma once

#include <vector>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/diagnosis.h"
#include "analysis/diagnose/shares.h"

namespace idlescope::diagnose {

DeviceDiagnosis summarize_device(const model::Model& model, const DevicePass& pass,
                                 const Shares& shares);

struct DeviceTables {
  std::vector<KernelSummary> kernels;
  std::vector<CopySummary> copies;
  std::vector<CallSummary> calls;
};

DeviceTables tabulate_device(const model::Model& model, const DevicePass& pass);

}  // namespace idlescope::diagnose
