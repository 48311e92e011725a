// The words of PyTorch profiles: categories of all dialects, overheads, annotations.
//
// In: "cat" and "name" of a row. Out: what kind of row, overhead or range it is.
#pragma once

#include <cstdint>
#include <string_view>

#include "proto/trace.pb.h"

namespace idlescope::read {

enum class RowKind : uint8_t {
  kForeign,  // a category of no PyTorch profiler
  kCpuOp,
  kAnnotation,
  kPython,
  kCall,
  kDriverCall,
  kKernel,
  kCopy,
  kMemset,
  kSync,
  kOverhead,
  kTrace,        // the span of the recording itself
  kIgnored,      // flows, instants, GPU-side copies of annotations
  kMissingGpu,   // rows that stand where device records should be (range profiler)
  kUnsupported,  // another accelerator's rows
};

RowKind row_kind(std::string_view category);
trace::OverheadKind kineto_overhead_kind(std::string_view name);
trace::RangeCategory kineto_annotation_category(std::string_view name);

}  // namespace idlescope::read
