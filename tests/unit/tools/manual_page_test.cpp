#include "tools/manual_page.h"

#include <gtest/gtest.h>

namespace idlescope::tools {
namespace {

TEST(ManualPage, SaysWhatHelpSays) {
  DescribedCommand report{"report", "Say why.", "  idlescope report run7", {}, {}, false};
  report.options.push_back({{"--fail-if"}, "Exit with 3 if 'DATA>10%'", {}, true});
  report.options.push_back({{"-q"}, ".quiet\\n", {}, false});
  report.arguments.push_back({{"PATH"}, "Recordings", {}, true});
  const std::string page = manual_page({report}, "0.1.0");
  EXPECT_EQ(page.rfind(".TH IDLESCOPE 1", 0), 0u);
  EXPECT_NE(page.find(".B idlescope report\n[\\fIoptions\\fR] [\\fIPATH\\fR ...]\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("\\fB\\-\\-fail\\-if\\fR \\fIVALUE\\fR\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n\\&.quiet\\en\n"), std::string::npos) << "no request of a text: " << page;
  EXPECT_NE(page.find(".SH EXIT STATUS"), std::string::npos);
  EXPECT_NE(page.find("IDLESCOPE_DISABLE"), std::string::npos);
}

}  // namespace
}  // namespace idlescope::tools
