// What a time can be.
//
// Times outside ±2^61 ns (73 years) are damage, not times, and so is a span of more than 2^53 ns
// (104 days). Readers let nothing else into a Recording, so that differences of two times and
// sums of a few spans cannot overflow later.
#pragma once

#include "analysis/read/recording.h"

namespace idlescope::read {

inline constexpr Ns kLatestNs = Ns{1} << 61;
inline constexpr Ns kLongestSpanNs = Ns{1} << 53;

inline bool plausible_time(Ns at_ns) { return at_ns >= -kLatestNs && at_ns <= kLatestNs; }
inline bool plausible_span(Ns begin_ns, Ns end_ns) {
  return plausible_time(begin_ns) && plausible_time(end_ns) && begin_ns <= end_ns &&
         end_ns - begin_ns <= kLongestSpanNs;
}

}  // namespace idlescope::read
