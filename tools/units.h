// Durations, sizes and shares as people type them on the command line.
//
// In: "3m", "2G", "1%". Out: seconds, bytes, fractions; nothing where the text is not one.
// Out again: the same quantities for a line of at most 80 columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace idlescope::tools {

// As timeout(1): a number and s (default), m, h or d. "90" = "90s" = "1.5m".
std::optional<double> parse_duration_s(std::string_view text);

// A number and B (default), K, M, G or T, powers of 1000; with i ("Gi") powers of 1024. A
// final B is allowed.
std::optional<uint64_t> parse_size_bytes(std::string_view text);

// "1%" or "0.01".
std::optional<double> parse_share(std::string_view text);

std::string format_duration(double seconds);  // "6 min 12 s", "0.4 s"
std::string format_size(uint64_t bytes);      // "9.6 MB"
std::string format_share(double share);       // "0.6 %"
std::string count_of(uint64_t count, std::string_view one, std::string_view many);

}  // namespace idlescope::tools
