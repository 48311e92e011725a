// Named ranges that a thread opens and closes: NVTX, the C API, Python ranges.
//
// In: begin with a name, end. Out: EVENT_RANGE at the end, with its nesting depth. One stack a
// thread, without allocation; what nests deeper than kMaxOpenRanges is counted, not recorded.
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idlescope::host {

inline constexpr int kMaxOpenRanges = 24;

// RangeCategory of trace.proto.
enum class RangeCategory : int64_t { kUser = 0, kNvtx = 1 };

// The depth of the new range on its thread (0: outermost).
int push_range(RangeCategory category, const char* name, size_t size);
// The depth of the range that ended; −1: none was open.
int pop_range();
void write_mark(const char* name, size_t size);

// A range that may end on another thread. 0: no room, it is not recorded.
uint64_t start_range(RangeCategory category, const char* name, size_t size);
void end_range(uint64_t id);

}  // namespace idlescope::host
