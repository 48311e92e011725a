#include "analysis/report/html/markup.h"

#include <fmt/format.h>

#include <algorithm>

namespace idlescope::report {
namespace {

// Length of a well-formed UTF-8 sequence at the start of `text`; 0: none.
size_t sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
      (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// U+202A to U+202E and U+2066 to U+2069 turn the writing direction of what follows: a name
// could make the page show something else than it says.
bool turns_direction(std::string_view character) {
  if (character.size() != 3) return false;
  const std::string_view block = character.substr(0, 2);
  const auto last = static_cast<unsigned char>(character[2]);
  return (block == "\xE2\x80" && last >= 0xAA && last <= 0xAE) ||
         (block == "\xE2\x81" && last >= 0xA6 && last <= 0xA9);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const size_t length = sequence(text);
    if (length == 0 || turns_direction(text.substr(0, length))) {
      out += kReplacement;
      text.remove_prefix(std::max<size_t>(1, length));
      continue;
    }
    switch (text[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(text[0]) < 0x20 && text[0] != '\n' && text[0] != '\t') {
          out += kReplacement;
        } else {
          out += text.substr(0, length);
        }
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string escape_json(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const size_t length = sequence(text);
    if (length == 0 || turns_direction(text.substr(0, length))) {
      out += "\\ufffd";
      text.remove_prefix(std::max<size_t>(1, length));
      continue;
    }
    const char c = text[0];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '<' || c == '>' || c == '&' || c == '\'' ||
               static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else if (text.substr(0, length) == "\xE2\x80\xA8" ||
               text.substr(0, length) == "\xE2\x80\xA9") {
      out += text[2] == '\xA8' ? "\\u2028" : "\\u2029";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

void Markup::tag(std::string_view element, Attributes attributes) {
  out_ += '<';
  out_ += element;
  for (const auto& [name, value] : attributes) {
    out_ += ' ';
    out_ += name;
    out_ += "=\"";
    out_ += escape_html(value);
    out_ += '"';
  }
  out_ += '>';
}

Markup& Markup::open(std::string_view element, Attributes attributes) {
  tag(element, attributes);
  open_.emplace_back(element);
  return *this;
}

Markup& Markup::close() {
  if (open_.empty()) return *this;
  out_ += "</" + open_.back() + ">";
  if (open_.back() != "span" && open_.back() != "b" && open_.back() != "td") out_ += '\n';
  open_.pop_back();
  return *this;
}

Markup& Markup::element(std::string_view element, Attributes attributes, std::string_view text) {
  return open(element, attributes).text(text).close();
}

Markup& Markup::empty(std::string_view element, Attributes attributes) {
  tag(element, attributes);
  return *this;
}

Markup& Markup::text(std::string_view text) {
  out_ += escape_html(text);
  return *this;
}

Markup& Markup::trusted(std::string_view built_in) {
  out_ += built_in;
  return *this;
}

std::string Markup::take() {
  while (!open_.empty()) close();
  return std::move(out_);
}

}  // namespace idlescope::report
