// Puts values into a message: "{count} steps" and {{"count", "3"}} give "3 steps".
//
// Values are formatted by the caller, so that one sentence reads the same in text,
// JSON and HTML. A name without a value stays as it stands.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idlescope::messages {

using Values = std::vector<std::pair<std::string, std::string>>;

inline std::string fill(std::string_view text, const Values& values) {
  std::string out;
  out.reserve(text.size() + 32);
  while (!text.empty()) {
    const size_t open = text.find('{');
    const size_t close = open == text.npos ? text.npos : text.find('}', open);
    if (close == text.npos) break;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    out.append(text.substr(0, open));
    bool found = false;
    for (const auto& [key, value] : values) {
      if (key == name) {
        out.append(value);
        found = true;
        break;
      }
    }
    if (!found) out.append(text.substr(open, close - open + 1));
    text.remove_prefix(close + 1);
  }
  out.append(text);
  return out;
}

}  // namespace idlescope::messages
