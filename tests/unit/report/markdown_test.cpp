// Markdown: shape, and names that try to be markup.
#include "analysis/report/markdown.h"

#include "tests/unit/report/report_fixture.h"

namespace idlescope::report {
namespace {

TEST(Markdown, IsAsWritten) {
  const std::string text = to_markdown(report_from("input_bound.textproto"), Language::kEnglish);
  EXPECT_EQ(text, file_text("input_bound.md")) << text;
}

TEST(Markdown, NamesStayText) {
  EXPECT_EQ(escape_markdown("<b>|*_`[x](y)"), "&lt;b>\\|\\*\\_\\`\\[x\\](y)");
  Report report = report_from("input_bound.textproto");
  report.mutable_fixes(0)->set_code("a ``b`` c");
  EXPECT_NE(to_markdown(report, Language::kEnglish).find("``` a ``b`` c ```"), std::string::npos);
}

}  // namespace
}  // namespace idlescope::report
