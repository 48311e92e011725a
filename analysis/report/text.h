// The report in a terminal: one screen of at most 80 columns that opens on the verdict.
//
// In: a finished Report and what the terminal can show. Out: text that ends in a newline.
// Renders only; every number and sentence was made by the report builder.
#pragma once

#include <functional>
#include <string>

#include "analysis/report/words.h"
#include "proto/report.pb.h"

namespace idlescope::report {

struct TextOptions {
  size_t width = 80;
  bool utf8 = false;     // bars in eighths of a column
  bool colour = false;   // ANSI colours
  bool verbose = false;  // -v: leaf names, evidence, anomalies, processes
  Language language = Language::kEnglish;
};

std::string render_text(const Report& report, const TextOptions& options);

enum class ColourChoice { kAuto, kAlways, kNever };

// Options by the conventions of terminals: NO_COLOR, CLICOLOR_FORCE, TERM=dumb, COLUMNS (60 to
// 80 are used), LC_ALL/LC_CTYPE/LANG for UTF-8, and the language: `language_flag` (--lang),
// IDLESCOPE_LANG, LC_ALL, LC_MESSAGES, LANG. `variable` returns nullptr for an unset one.
TextOptions options_for_terminal(bool is_terminal, ColourChoice colour,
                                 const std::string& language_flag,
                                 const std::function<const char*(const char*)>& variable);

}  // namespace idlescope::report
