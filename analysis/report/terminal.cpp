#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "analysis/report/text.h"

namespace idlescope::report {
namespace {

bool names_utf8(std::string locale_name) {
  std::transform(locale_name.begin(), locale_name.end(), locale_name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return locale_name.find("utf-8") != std::string::npos ||
         locale_name.find("utf8") != std::string::npos;
}

}  // namespace

TextOptions options_for_terminal(bool is_terminal, ColourChoice colour,
                                 const std::string& language_flag,
                                 const std::function<const char*(const char*)>& variable) {
  // The first variable that is set and not empty, as POSIX orders locales.
  const auto first = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names) {
      const char* value = variable(name);
      if (value && *value) return value;
    }
    return "";
  };
  TextOptions options;
  options.utf8 = names_utf8(first({"LC_ALL", "LC_CTYPE", "LANG"}));
  const bool dumb = first({"TERM"}) == "dumb";
  switch (colour) {
    case ColourChoice::kAlways:
      options.colour = true;
      break;
    case ColourChoice::kNever:
      options.colour = false;
      break;
    case ColourChoice::kAuto: {
      const std::string force = first({"CLICOLOR_FORCE"});
      if (!first({"NO_COLOR"}).empty()) {
        options.colour = false;
      } else if (!force.empty() && force != "0") {
        options.colour = true;
      } else {
        options.colour = is_terminal && !dumb;
      }
      break;
    }
  }
  const long terminal_columns = std::strtol(first({"COLUMNS"}).c_str(), nullptr, 10);
  if (terminal_columns > 0) {
    options.width = static_cast<size_t>(std::clamp(terminal_columns, 60L, 80L));
  }
  options.language =
      language_of(language_flag.empty() ? first({"IDLESCOPE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"})
                                        : language_flag);
  return options;
}

}  // namespace idlescope::report
