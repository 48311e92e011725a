#include "tools/say.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace idlescope::tools {
namespace {

constexpr std::string_view kPrefix = "idlescope: ";
constexpr std::string_view kUnderPrefix = "           ";

// Columns of a UTF-8 text whose characters are one column wide.
size_t columns_of(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

// One write for the whole text: lines of several processes do not mix.
void write_stderr(const std::string& text) {
  std::string out;
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  if (isatty(STDERR_FILENO) == 1 && !dumb) out = "\r\033[K";
  out += text;
  std::fwrite(out.data(), 1, out.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string wrap(std::string_view text, std::string_view first_indent, std::string_view next_indent,
                 size_t columns) {
  std::string out(first_indent);
  size_t column = columns_of(first_indent);
  bool at_start = true;
  while (!text.empty()) {
    const size_t end = text.find_first_of(" \n");
    const std::string_view word = text.substr(0, end);
    const size_t width = columns_of(word);
    if (!at_start && !word.empty()) {
      if (column + 1 + width > columns) {
        out += '\n';
        out += next_indent;
        column = columns_of(next_indent);
      } else {
        out += ' ';
        ++column;
      }
    }
    out += word;
    column += width;
    if (!word.empty()) at_start = false;
    if (end == text.npos) break;
    if (text[end] == '\n') {  // a line break of the text itself stays
      out += '\n';
      out += next_indent;
      column = columns_of(next_indent);
      at_start = true;
    }
    text.remove_prefix(end + 1);
  }
  out += '\n';
  return out;
}

void say(const messages::Message& message, const messages::Values& values) {
  write_stderr(wrap(messages::fill(message.text, values), kPrefix, kUnderPrefix));
}

void say_error(const messages::Message& message, const messages::Values& values,
               std::string_view help) {
  const std::string text =
      "[" + std::string(message.id) + "] " + messages::fill(message.text, values);
  std::string out = wrap(text, kPrefix, "  ");
  if (!help.empty()) out += wrap(help, "  ", "  ");
  write_stderr(out);
}

void say_help(std::string_view text) { write_stderr(wrap(text, "  ", "  ")); }

}  // namespace idlescope::tools
