// What a recorder would have kept of a run: windows, host calls by callback, device records,
// host events, worker processes' own files, and everything that goes wrong on the way.
//
// In: Program, Execution, ViewSpec (nuisances). Out: one trace.proto message per process.
// Applied after the truth is known; nothing here changes what happened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/simulate/engine.h"

namespace idlescope::simulate {

struct ViewSpec {
  uint64_t seed = 1;
  Ns clock_error_ns = 0;             // device clock off by up to ±this, per window
  int64_t drop_per_million = 0;      // device records and calls that are lost
  bool rename_kernels = false;       // names say nothing
  bool opaque_graphs = false;        // one record per graph launch
  bool permute_threads = false;      // thread ids in no order
  bool driver_calls = true;          // some launches also show their driver call
  int32_t only_rank = -1;            // files of one rank only; -1: all
  std::vector<trace::Kind> removed;  // kinds of evidence that are not in the recording
};

struct RecordedProcess {
  std::string file_name;  // HOST.PID.START.N.istrace
  trace::Trace trace;
};

inline constexpr Ns kRecordingBase = 7'200'000'000'000;  // CLOCK_MONOTONIC of time 0

std::vector<RecordedProcess> record(const Program& program, const Execution& run,
                                    const ViewSpec& view);

// Pid that the main process of `rank` has in the recording.
int64_t main_pid(const Program& program, uint16_t rank, const ViewSpec& view);

}  // namespace idlescope::simulate
