#include "analysis/export/redact.h"

namespace idlescope::exporting {
namespace {

bool ends_word(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '"' || c == '\'' || c == ',' || c == ';' ||
         c == '(' || c == ')' || c == '<' || c == '>' || c == '=' || c == '[' || c == ']' ||
         c == '{' || c == '}';
}

// Letters before "://" that make a URL's scheme.
bool is_scheme(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.') return false;
  }
  return true;
}

// C++ and template names hold ':' and '/' never; a path has a '/' and no "::".
bool is_path(std::string_view word) {
  const size_t slash = word.find('/');
  if (slash == std::string_view::npos || word.find("::") != std::string_view::npos) return false;
  return word.size() > 1;
}

}  // namespace

std::string Redactor::placeholder(std::string_view kind, std::string_view what) {
  const std::string key = std::string(kind) + ":" + std::string(what);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const std::string made = std::string(kind) + std::to_string(++counts_[std::string(kind)]);
  known_[key] = made;
  return made;
}

std::string Redactor::host(std::string_view name) {
  return name.empty() ? "" : placeholder("host", name);
}

std::string Redactor::text(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    if (ends_word(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && !ends_word(text[end])) ++end;
    const std::string_view scheme_mark = "://";
    const size_t scheme = text.substr(at, end - at).find(scheme_mark);
    if (scheme != std::string_view::npos && is_scheme(text.substr(at, scheme))) {
      // A URL runs to the next space or quote: queries hold '=' and ',' and tokens.
      while (end < text.size() && text[end] != ' ' && text[end] != '"' && text[end] != '\'' &&
             text[end] != '\n') {
        ++end;
      }
      out += placeholder("url", text.substr(at, end - at));
      at = end;
      continue;
    }
    const std::string_view word = text.substr(at, end - at);
    at = end;
    if (is_path(word)) {
      const size_t slash = word.rfind('/');
      out += placeholder("dir", word.substr(0, slash)) + "/" + std::string(word.substr(slash + 1));
      continue;
    }
    const auto host = known_.find("host:" + std::string(word));
    out += host != known_.end() ? host->second : std::string(word);
  }
  return out;
}

}  // namespace idlescope::exporting
