// Help texts of at most 80 columns; a subcommand's line in the overview is the first line
// of its description.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/say.h"

namespace idlescope::tools {

class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(22); }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return row("  " + make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    const std::string description = sub->get_description();
    return row("  " + sub->get_name(), description.substr(0, description.find('\n')));
  }

 private:
  std::string row(const std::string& name, const std::string& text) const {
    const std::string indent(get_column_width(), ' ');
    std::string first = name;
    std::string out;
    if (first.size() >= indent.size()) {
      out = first + "\n";
      first = indent;
    } else {
      first.resize(indent.size(), ' ');
    }
    return out + wrap(text, first, indent);
  }
};

}  // namespace idlescope::tools
