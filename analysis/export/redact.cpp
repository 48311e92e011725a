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

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Relative paths have a '/' and no "::", which C++ names have; absolute ones may have both
// ("/home/me/test_x.py::test_y").
bool is_path(std::string_view word) {
  if (word.size() < 2) return false;
  if (word[0] == '/' || word.substr(0, 2) == "~/") return true;
  if (word.size() > 2 && is_letter(word[0]) && word[1] == ':' && word[2] == '\\') return true;
  return word.find('/') != word.npos && word.find("::") == word.npos;
}

// Where an absolute path at the beginning of `text` ends, spaces in its directories included:
// "/home/me too/train.py:41 loop" ends before " loop". 0: no file and line.
size_t end_of_source_line(std::string_view text) {
  if (text.empty() || text[0] != '/') return 0;
  for (size_t colon = text.find(':'); colon != text.npos; colon = text.find(':', colon + 1)) {
    size_t end = colon + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    const bool line = end > colon + 1 && (end == text.size() || ends_word(text[end]));
    if (line) return end;
  }
  return 0;
}

// "10.1.2.3", "10.1.2.3:29500"
bool is_address(std::string_view word) {
  int parts = 0;
  size_t at = 0;
  while (parts < 4) {
    const size_t begin = at;
    while (at < word.size() && is_digit(word[at])) ++at;
    if (at == begin || at - begin > 3) return false;
    ++parts;
    if (parts < 4 && (at == word.size() || word[at++] != '.')) return false;
  }
  return at == word.size() || word[at] == ':';
}

bool is_mail(std::string_view word) {
  const size_t at = word.find('@');
  return at != word.npos && at > 0 && at + 1 < word.size();
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
  if (name.empty()) return "";
  const std::string made = placeholder("host", name);
  hosts_[std::string(name)] = made;
  // "node17" stands for "node17.cluster.example" in most texts.
  const size_t dot = name.find('.');
  if (dot != name.npos && dot > 0) hosts_.emplace(name.substr(0, dot), made);
  return made;
}

// Known hosts at the borders of words: "node17:29500", "gpu-node17" is another one.
std::string Redactor::without_hosts(std::string_view word) const {
  std::string out(word);
  const auto joins = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; };
  for (auto entry = hosts_.rbegin(); entry != hosts_.rend(); ++entry) {  // longer ones first
    const auto& [name, made] = *entry;
    for (size_t at = out.find(name); at != out.npos; at = out.find(name, at)) {
      const size_t end = at + name.size();
      if ((at > 0 && joins(out[at - 1])) || (end < out.size() && joins(out[end]))) {
        at = end;
        continue;
      }
      out.replace(at, name.size(), made);
      at += made.size();
    }
  }
  return out;
}

std::string Redactor::path(std::string_view word) {
  const size_t slash = word.find_last_of("/\\");
  return placeholder("dir", word.substr(0, slash)) + "/" + std::string(word.substr(slash + 1));
}

std::string Redactor::text(std::string_view text) {
  std::string out;
  size_t at = 0;
  if (const size_t end = end_of_source_line(text); end > 0) {
    out = path(text.substr(0, end));
    at = end;
  }
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
      out += path(word);
    } else if (is_mail(word)) {
      out += placeholder("mail", word);
    } else if (is_address(word)) {
      out += placeholder("address", word);
    } else {
      out += without_hosts(word);
    }
  }
  return out;
}

}  // namespace idlescope::exporting
