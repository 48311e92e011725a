// Large numbers on the host that cost the device nothing: candidates for the NOT IT line.
//
// In: calls with host time and charged device time, the loader. Out: candidates by host
// time; the report builder words the two largest.
#pragma once

#include <vector>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/diagnosis.h"
#include "analysis/diagnose/shares.h"

namespace idlescope::diagnose {

// Per-step host and hidden time of next() in the analysed steps.
void charge_loader(const Shares& shares, const model::Model& model, uint32_t process,
                   const DevicePass& pass, double steps, LoaderSummary& loader);

// `steps`: analysed steps; 0: none, numbers are of the window.
std::vector<NotIt> find_not_it(const DeviceDiagnosis& device, const std::vector<CallSummary>& calls,
                               const LoaderSummary& loader, double steps);

}  // namespace idlescope::diagnose
