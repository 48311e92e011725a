// The six pages of the HTML report, one function each, and what they share.
#pragma once

#include <string>

#include "analysis/report/html/markup.h"
#include "analysis/report/words.h"
#include "proto/report.pb.h"

namespace idlescope::report {

class Page {
 public:
  Page(const Report& from, Language in) : report(from), language(in) {}

  const Report& report;
  const Language language;
  Markup html;

  std::string words(const Text& text) const { return render(text, language); }
  std::string words(const messages::Message& message) const { return render(message, language); }
  std::string words(const messages::Message& message, const messages::Values& values) const {
    Say text(message);
    for (const auto& [name, value] : values) text.with(name, value);
    return render(Text(text), language);
  }
  void heading(const messages::Message& message) { html.element("h2", {}, words(message)); }
  void note(const messages::Message& message) {
    html.element("p", {{"class", "note"}}, words(message));
  }
};

void answer_page(Page* page);   // 1
void step_page(Page* page);     // 2
void loading_page(Page* page);  // 3
void gpu_page(Page* page);      // 4
void run_page(Page* page);      // 5
void sure_page(Page* page);     // 6

// Rows of a long table that are seen before "show all".
inline constexpr size_t kRowsAtFirst = 10;

// An empty place that the script draws in; without it, a line that says so.
void drawing(Page* page, const char* id);

// The embedded JSON of the drawings.
std::string drawing_data(const Report& report, Language language);

// CSS class of a verdict's colour: "c-data"; the same on every page.
std::string colour_class(Verdict verdict);

// Index into report.gaps of the longest gap of that verdict; -1: none.
int longest_gap(const Report& report, Verdict verdict);

}  // namespace idlescope::report
