// The report builder: what the analyzer found, ranked, rounded and put into sentences.
//
// In: diagnose::Diagnosis (numbers) and the Recording it came from (anomalies, ranges).
// Out: report.proto Report, which is all that any renderer, `compare` or --fail-if sees.
// The only place that ranks, rounds and writes sentences. Forecasts are added by what-if
// (Fix.forecast stays absent here).
#pragma once

#include "analysis/diagnose/diagnosis.h"
#include "analysis/read/recording.h"
#include "proto/report.pb.h"

namespace idlescope::report {

Report build(const diagnose::Diagnosis& diagnosis, const read::Recording& recording);

}  // namespace idlescope::report
