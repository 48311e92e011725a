// Fitting text into terminal columns.
//
// In: UTF-8 text. Out: its width in columns (Chinese characters take two), lines no wider
// than a limit, bars. Invalid UTF-8 bytes count as one column each: names come from traces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace idlescope::report {

size_t columns(std::string_view text);

// Breaks at spaces and between Chinese characters (not before closing punctuation). A word
// wider than the limit is cut. Never returns an empty vector.
std::vector<std::string> wrap(std::string_view text, size_t width);
// The same, but a long word stays whole: paths and commands are there to be copied. The first
// line may have a limit of its own.
std::vector<std::string> wrap_words(std::string_view text, size_t first_width, size_t width);

std::string pad_right(std::string_view text, size_t width);
std::string pad_left(std::string_view text, size_t width);

// `length` in columns; UTF-8 bars end in eighths of a column, ASCII bars are '#'. A value
// above zero is never drawn as nothing in UTF-8.
std::string bar(double length, bool utf8);

// Shortens the middle: "void at::native::…kernel<float>". ASCII "..." when not utf8.
std::string shorten(std::string_view text, size_t width, bool utf8);

// Control characters of names (ESC and alike) made visible, so that a trace cannot drive the
// terminal. Line ends stay.
std::string printable(std::string_view text);

}  // namespace idlescope::report
