// The screens of the terminal report, word for word, and what terminals can show.
#include "analysis/report/text.h"

#include <map>

#include "analysis/report/layout.h"
#include "tests/unit/report/report_fixture.h"

namespace idlescope::report {
namespace {

TEST(Text, ScreensAreAsWritten) {
  for (const std::string name : {"input_bound", "launch_bound", "gpu_bound", "too_few_steps"}) {
    const std::string text = render_text(report_from(name + ".textproto"), TextOptions());
    EXPECT_EQ(text, file_text(name + ".txt")) << name << "\n" << text;
  }
}

TEST(Text, NoLineIsWiderThanTheTerminalInAnyLanguage) {
  for (const std::string name : {"input_bound", "launch_bound", "gpu_bound", "too_few_steps"}) {
    for (const size_t width : {80, 71, 60}) {
      for (const Language language : {Language::kEnglish, Language::kChinese}) {
        TextOptions options;
        options.width = width;
        options.utf8 = true;
        options.verbose = true;
        options.language = language;
        std::istringstream lines(render_text(report_from(name + ".textproto"), options));
        for (std::string line; std::getline(lines, line);) {
          EXPECT_LE(columns(line), width) << line;
        }
      }
    }
  }
}

TEST(Text, ColourOnlyWhenAsked) {
  const Report report = report_from("input_bound.textproto");
  TextOptions options;
  EXPECT_EQ(render_text(report, options).find('\033'), std::string::npos);
  options.colour = true;
  EXPECT_NE(render_text(report, options).find("\033[1mYour GPU waits for data."),
            std::string::npos);
}

TEST(Text, NamesFromTheTraceCannotDriveTheTerminal) {
  Report report = report_from("input_bound.textproto");
  report.mutable_fixes(0)->set_site("\033]0;gotcha\007train.py:41");
  report.mutable_limits(0)->set_text("bad \x1b[2J byte \xff end");
  const std::string text = render_text(report, TextOptions());
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(text.find('\007'), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_NE(text.find("?]0;gotcha?train.py:41"), std::string::npos) << text;
}

TEST(Text, ForecastsAreLeftOutWhereThereAreNone) {
  Report report = report_from("input_bound.textproto");
  report.mutable_fixes(0)->clear_forecast();
  report.mutable_fixes(0)->mutable_no_forecast()->set_text(
      "at most 1.62x (upper limit, no forecast)");
  const std::string text = render_text(report, TextOptions());
  EXPECT_NE(text.find("at most 1.62x (upper limit, no forecast)"), std::string::npos) << text;
  // The second fix's forecast now starts from the recorded step and stands alone.
  EXPECT_NE(text.find("212 -> 125 ms a step: 1.70x (1.60-1.77)"), std::string::npos) << text;
}

TEST(Terminal, FollowsTheConventions) {
  std::map<std::string, std::string> set;
  const auto variable = [&](const char* name) -> const char* {
    const auto it = set.find(name);
    return it == set.end() ? nullptr : it->second.c_str();
  };
  const auto options = [&](bool terminal, ColourChoice colour = ColourChoice::kAuto,
                           const std::string& language = "") {
    return options_for_terminal(terminal, colour, language, variable);
  };
  EXPECT_FALSE(options(false).colour);
  EXPECT_TRUE(options(true).colour);
  EXPECT_FALSE(options(true).utf8);
  EXPECT_EQ(options(true).width, 80u);
  EXPECT_FALSE(options(true, ColourChoice::kNever).colour);
  EXPECT_TRUE(options(false, ColourChoice::kAlways).colour);

  set = {{"TERM", "dumb"}};
  EXPECT_FALSE(options(true).colour);
  set = {{"CLICOLOR_FORCE", "1"}};
  EXPECT_TRUE(options(false).colour);
  set = {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}};
  EXPECT_FALSE(options(true).colour);
  set = {{"NO_COLOR", "1"}};
  EXPECT_TRUE(options(true, ColourChoice::kAlways).colour) << "a flag wins over a variable";

  set = {{"LANG", "en_US.UTF-8"}};
  EXPECT_TRUE(options(true).utf8);
  set = {{"LANG", "en_US.UTF-8"}, {"LC_ALL", "C"}};
  EXPECT_FALSE(options(true).utf8) << "LC_ALL comes first";
  set = {{"LANG", "zh_CN.utf8"}};
  EXPECT_EQ(options(true).language, Language::kChinese);
  EXPECT_TRUE(options(true).utf8);
  EXPECT_EQ(options(true, ColourChoice::kAuto, "en").language, Language::kEnglish);
  set = {{"LANG", "zh_CN.utf8"}, {"IDLESCOPE_LANG", "en"}};
  EXPECT_EQ(options(true).language, Language::kEnglish);

  set = {{"COLUMNS", "60"}};
  EXPECT_EQ(options(true).width, 60u);
  set = {{"COLUMNS", "200"}};
  EXPECT_EQ(options(true).width, 80u);
  set = {{"COLUMNS", "x"}};
  EXPECT_EQ(options(true).width, 80u);
}

}  // namespace
}  // namespace idlescope::report
