// CUPTI's activity records of versions 12 and 13 as the recorder's own plain records.
//
// In: one record of a completed buffer and the version of the CUPTI that wrote it. Out: a
// GpuOp, an overhead span, or "incomplete". This is the only file that knows the layout of
// CUPTI's versioned structs. Drain thread.
#pragma once

#include <cupti.h>

#include <cstdint>

#include "profiler/emit/device_record.h"

namespace idlescope::cuda {

enum class Decoded : uint8_t {
  kOp,          // op and name are filled
  kOverhead,    // overhead is filled
  kIncomplete,  // begin or end is 0: counted, never shown
  kOther        // a kind we do not use
};

struct DecodedRecord {
  emit::GpuOp op;    // key.name_id is left 0
  const char* name;  // kernels: CUPTI's string, valid until the next detach
  emit::OverheadSpan overhead;
  uint32_t trace_kind;  // trace.proto Kind, also of incomplete records
};

// cuptiGetVersion of CUDA 12.0; older ones lay records out differently and are refused.
constexpr uint32_t kOldestCupti = 18;

Decoded decode_record(const CUpti_Activity* record, uint32_t cupti_version, DecodedRecord* out);

}  // namespace idlescope::cuda
