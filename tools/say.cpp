#include "tools/say.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "analysis/report/layout.h"

namespace idlescope::tools {
namespace {

constexpr std::string_view kPrefix = "idlescope: ";
constexpr std::string_view kUnderPrefix = "           ";

report::Language language = report::Language::kEnglish;

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

void speak(report::Language chosen) { language = chosen; }

std::string words(const messages::Message& message, const messages::Values& values) {
  report::Say text(message);
  for (const auto& [name, value] : values) text.with(name, value);
  return report::render(report::Text(text), language);
}

std::string wrap(std::string_view text, std::string_view first_indent, std::string_view next_indent,
                 size_t columns) {
  const auto room = [&](std::string_view indent) {
    return columns - std::min(columns, report::columns(indent));
  };
  std::string out;
  std::string indent(first_indent);
  for (const std::string& line : report::wrap_words(text, room(first_indent), room(next_indent))) {
    out += indent + line + '\n';
    indent = next_indent;
  }
  return out;
}

void say(const messages::Message& message, const messages::Values& values) {
  write_stderr(wrap(words(message, values), kPrefix, kUnderPrefix));
}

void say_error(const messages::Message& message, const messages::Values& values,
               std::string_view help) {
  say_error_text(message.id, words(message, values), help);
}

void say_error_text(std::string_view id, std::string_view text, std::string_view help) {
  std::string out = wrap("[" + std::string(id) + "] " + std::string(text), kPrefix, "  ");
  if (!help.empty()) out += wrap(help, "  ", "  ");
  write_stderr(out);
}

void say_help(std::string_view text) { write_stderr(wrap(text, "  ", "  ")); }

}  // namespace idlescope::tools
