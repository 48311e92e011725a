// Expands one zstd frame, within limits.
//
// In: the frame (RFC 8878) of a compressed packet. Out: its content, or what is wrong with it
// in a few words. A frame that would expand past the limits is refused, not expanded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace idlescope::read {

// Our own writer reaches a ratio of 4 to 8 and frames of a few MiB.
inline constexpr uint64_t kMaxFrameBytes = uint64_t{512} << 20;
inline constexpr uint64_t kMaxFrameRatio = 1000;

tl::expected<std::string, std::string> expand_zstd(std::string_view frame);

}  // namespace idlescope::read
