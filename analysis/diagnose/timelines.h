// The typical and the worst step as lanes to draw.
//
// In: the chosen device's pass, its steps. Out: Timelines with lanes for the device, copies,
// causes, the main and pin threads, workers and queue depth. Lanes are limited to
// kBarsPerLane bars; neighbours are merged where there are more.
#pragma once

#include <vector>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/diagnosis.h"

namespace idlescope::diagnose {

inline constexpr size_t kBarsPerLane = 2000;

std::vector<Timeline> draw_timelines(const model::Model& model, const DevicePass& pass,
                                     const std::vector<Gap>& gaps);

}  // namespace idlescope::diagnose
