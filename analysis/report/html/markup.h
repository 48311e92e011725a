// Writes HTML that is always closed and always escaped.
//
// In: element names and attributes of ours, text from anywhere. Out: one string. Text and
// attribute values are escaped by construction: there is no call that writes them raw, except
// `trusted`, for the style sheet and scripts that were built in.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idlescope::report {

class Markup {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  Markup& open(std::string_view element, Attributes attributes = {});
  Markup& close();  // the innermost open element
  // <element …>text</element>
  Markup& element(std::string_view element, Attributes attributes, std::string_view text);
  Markup& empty(std::string_view element, Attributes attributes = {});  // no end tag
  Markup& text(std::string_view text);
  Markup& trusted(std::string_view built_in);
  std::string take();  // closes what is open

 private:
  void tag(std::string_view element, Attributes attributes);

  std::string out_;
  std::vector<std::string> open_;
};

std::string escape_html(std::string_view text);
// The inside of a JSON string that may stand in a <script> block: quotes, control characters,
// and < > & as \u escapes; broken UTF-8 becomes U+FFFD.
std::string escape_json(std::string_view text);

}  // namespace idlescope::report
