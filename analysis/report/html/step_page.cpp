// Page 2: the drawing of a typical and a worst step, and the longest waits as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/html/page_parts.h"
#include "analysis/report/html/table.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// How the cause of a gap is known, by most of its time.
std::string grades(const Page& page, const Gap& gap) {
  int64_t ns[3] = {0, 0, 0};
  for (const LeafTime& piece : gap.pieces()) {
    ns[0] += piece.grade_a_ns();
    ns[1] += piece.grade_b_ns();
    ns[2] += piece.grade_c_ns();
  }
  if (ns[0] + ns[1] + ns[2] <= 0) return "";
  static constexpr const messages::Message* kGrades[] = {&messages::kGradeA, &messages::kGradeB,
                                                         &messages::kGradeC};
  return page.words(*kGrades[std::max_element(ns, ns + 3) - ns]);
}

void gap_table(Page* page) {
  const Report& report = page->report;
  if (report.gaps().empty()) return;
  page->heading(messages::kStepGaps);
  Table table(page, {&messages::kColLength, &messages::kColCause, &messages::kColWhy,
                     &messages::kColStep, &messages::kColEndedBy, &messages::kColEvidence});
  for (int i = 0; i < report.gaps_size(); ++i) {
    const Gap& gap = report.gaps(i);
    Cell length = time_cell(gap.end_ns() - gap.begin_ns());
    length.link = fmt::format("#gap={}", i);  // a key can reach it
    table.row({length,
               word(page->words(leaf_words(gap.top_leaf())),
                    "cause " + colour_class(verdict_of(gap.top_leaf()))),
               word(page->words(gap.text()), "why"),
               word(gap.step() >= 0 ? std::to_string(gap.step()) : ""), named(gap.ended_by()),
               word(grades(*page, gap))},
              fmt::format("gap={}", i));
  }
  table.end(kRowsAtFirst);
}

}  // namespace

void step_page(Page* page) {
  page->html.open("section", {{"id", "step"}});
  page->html.element("h1", {}, page->words(messages::kPageStep));
  if (page->report.timelines().empty()) {
    page->note(messages::kStepNone);
  } else {
    page->note(messages::kStepIntro);
    drawing(page, "timeline");
    page->html.element("p", {{"id", "gap-sentence"}, {"class", "lead"}, {"aria-live", "polite"}},
                       "");
    page->html.element("p", {{"class", "note with-script"}}, page->words(messages::kStepHow));
  }
  gap_table(page);
  page->html.close();
}

}  // namespace idlescope::report
