#include "analysis/report/layout.h"

#include <algorithm>
#include <cmath>

namespace idlescope::report {
namespace {

struct Glyph {
  std::string_view bytes;
  uint32_t code;
  size_t width;
};

bool is_wide(uint32_t code) {
  return (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
         (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
         (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
         (code >= 0xFFE0 && code <= 0xFFE6) || (code >= 0x1F300 && code <= 0x1FAFF) ||
         (code >= 0x20000 && code <= 0x3FFFD);
}

// First code point of a non-empty text.
Glyph next_glyph(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80    ? 1
                        : lead >= 0xF0 ? 4
                        : lead >= 0xE0 ? 3
                        : lead >= 0xC2 ? 2
                                       : 1;
  uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  if (length > text.size()) return {text.substr(0, 1), lead, 1};
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {text.substr(0, 1), lead, 1};
    code = code << 6 | (byte & 0x3Fu);
  }
  return {text.substr(0, length), code, is_wide(code) ? 2u : 1u};
}

// True at the space of "91 ms" or "38 %": a number keeps its unit on its line.
bool joins_unit(std::string_view before, std::string_view after) {
  if (before.empty() || before.back() < '0' || before.back() > '9') return false;
  for (const std::string_view unit : {"%", "ms", "us", "ns", "s", "min", "h", "MB", "GB", "kB"}) {
    if (after.substr(0, unit.size()) != unit) continue;
    const char next = after.size() > unit.size() ? after[unit.size()] : ' ';
    if ((next < 'a' || next > 'z') && (next < 'A' || next > 'Z')) return true;
  }
  return false;
}

// Characters that must not begin a line.
bool closes(uint32_t code) {
  switch (code) {
    case 0x3001:  // 、
    case 0x3002:  // 。
    case 0xFF0C:  // ，
    case 0xFF1A:  // ：
    case 0xFF1B:  // ；
    case 0xFF09:  // ）
    case 0x3011:  // 】
      return true;
    default:
      return false;
  }
}

// Characters that must not end a line.
bool opens(uint32_t code) { return code == 0xFF08 || code == 0x3010; }  // （ 【

}  // namespace

size_t columns(std::string_view text) {
  size_t total = 0;
  while (!text.empty()) {
    const Glyph glyph = next_glyph(text);
    total += glyph.width;
    text.remove_prefix(glyph.bytes.size());
  }
  return total;
}

namespace {

std::vector<std::string> wrapped(std::string_view text, size_t first_width, size_t other_width,
                                 bool cut) {
  std::vector<std::string> lines;
  const auto room = [&] { return std::max<size_t>(lines.empty() ? first_width : other_width, 8); };
  std::string line;  // fits
  size_t line_width = 0;
  std::string word;  // since the last place where a line may end
  size_t word_width = 0;
  bool space = false;   // between line and word
  bool opened = false;  // the word ends with an opening bracket
  const auto place_word = [&] {
    if (word.empty()) return;
    if (line_width > 0 && line_width + (space ? 1 : 0) + word_width > room()) {
      lines.push_back(line);
      line.clear();
      line_width = 0;
    } else if (space && line_width > 0) {
      line += ' ';
      ++line_width;
    }
    line += word;
    line_width += word_width;
    word.clear();
    word_width = 0;
    space = false;
  };
  while (!text.empty()) {
    const Glyph glyph = next_glyph(text);
    text.remove_prefix(glyph.bytes.size());
    if (glyph.code == '\n') {
      place_word();
      lines.push_back(line);
      line.clear();
      line_width = 0;
      space = false;
      continue;
    }
    if (glyph.code == ' ' && !joins_unit(word, text)) {
      place_word();
      space = true;
      continue;
    }
    if (glyph.width == 2 && !closes(glyph.code) && !opened) place_word();
    if (cut && word_width + glyph.width > room()) place_word();
    word += glyph.bytes;
    word_width += glyph.width;
    opened = opens(glyph.code);
    if (glyph.width == 2 && !closes(glyph.code) && !opened) {
      // A closing mark that follows stays with this character.
      if (text.empty() || !closes(next_glyph(text).code)) place_word();
    }
  }
  place_word();
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, size_t width) {
  return wrapped(text, width, width, true);
}

std::vector<std::string> wrap_words(std::string_view text, size_t first_width, size_t width) {
  return wrapped(text, first_width, width, false);
}

std::string pad_right(std::string_view text, size_t width) {
  const size_t used = columns(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

std::string pad_left(std::string_view text, size_t width) {
  const size_t used = columns(text);
  return std::string(used < width ? width - used : 0, ' ') + std::string(text);
}

std::string bar(double length, bool utf8) {
  length = std::max(0.0, length);
  if (!utf8) return std::string(static_cast<size_t>(std::lround(length)), '#');
  static constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  long eighths = std::lround(length * 8);
  if (eighths == 0 && length > 0) eighths = 1;
  std::string out;
  for (long i = 0; i < eighths / 8; ++i) out += "█";
  return out + std::string(kEighths[eighths % 8]);
}

std::string shorten(std::string_view text, size_t width, bool utf8) {
  if (columns(text) <= width) return std::string(text);
  const std::string_view dots = utf8 ? "…" : "...";
  const size_t keep = width > columns(dots) ? width - columns(dots) : 0;
  const auto take = [](std::string_view from, size_t limit) {
    std::string out;
    size_t used = 0;
    while (!from.empty()) {
      const Glyph glyph = next_glyph(from);
      if (used + glyph.width > limit) break;
      out += glyph.bytes;
      used += glyph.width;
      from.remove_prefix(glyph.bytes.size());
    }
    return out;
  };
  const std::string head = take(text, (keep + 1) / 2);
  // The tail: drop leading glyphs until the rest fits.
  std::string_view tail = text;
  while (!tail.empty() && columns(tail) > keep / 2)
    tail.remove_prefix(next_glyph(tail).bytes.size());
  return head + std::string(dots) + std::string(tail);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Glyph glyph = next_glyph(text);
    text.remove_prefix(glyph.bytes.size());
    const bool lone = glyph.bytes.size() == 1 && glyph.code >= 0x80;
    const bool control = (glyph.code < 0x20 && glyph.code != '\n') || glyph.code == 0x7F ||
                         (glyph.code >= 0x80 && glyph.code < 0xA0) ||
                         (glyph.code >= 0x202A && glyph.code <= 0x202E) ||  // writing direction
                         (glyph.code >= 0x2066 && glyph.code <= 0x2069);
    if (lone || control) {
      out += '?';
    } else {
      out += glyph.bytes;
    }
  }
  return out;
}

}  // namespace idlescope::report
