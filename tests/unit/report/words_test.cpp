// Sentences: the two catalogues agree, values are translated, nothing is left unsaid.
#include "analysis/report/words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "analysis/report/text.h"
#include "proto/messages.h"
#include "tests/unit/report/report_fixture.h"

namespace idlescope::report {
namespace {

struct Catalogue {
  std::map<std::string, std::string> text;  // by id
};

Catalogue read_catalogue(const std::string& name) {
  Catalogue out;
  std::ifstream file(std::string(IDLESCOPE_CATALOGUES) + "/" + name);
  EXPECT_TRUE(file.good());
  const std::regex entry(R"re(IDLESCOPE_MESSAGE\(\w+, "([^"]+)", "((?:[^"\\]|\\.)*)"\))re");
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (!std::regex_match(line, match, entry)) continue;
    out.text[match[1]] = match[2];
  }
  return out;
}

std::set<std::string> names(const std::string& text) {
  std::set<std::string> out;
  const std::regex name(R"(\{(\w+)\})");
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it)
    out.insert((*it)[1]);
  return out;
}

TEST(Catalogues, EverySentenceIsThereInBothLanguagesWithTheSameValues) {
  const Catalogue english = read_catalogue("messages_en.def");
  const Catalogue chinese = read_catalogue("messages_zh.def");
  ASSERT_GT(english.text.size(), 500u);
  for (const auto& [id, text] : english.text) {
    const auto translated = chinese.text.find(id);
    ASSERT_NE(translated, chinese.text.end()) << "no Chinese line for " << id;
    EXPECT_EQ(names(translated->second), names(text)) << id;
  }
  for (const auto& [id, text] : chinese.text) {
    EXPECT_TRUE(english.text.count(id)) << "Chinese only: " << id;
  }
}

// A line that was copied and not translated has no Chinese character in it. Commands, API names
// and formats of values stay as they are.
TEST(Catalogues, TranslatedLinesAreTranslated) {
  const Catalogue english = read_catalogue("messages_en.def");
  const Catalogue chinese = read_catalogue("messages_zh.def");
  const std::regex chinese_character("[\xe4-\xe9][\x80-\xbf][\x80-\xbf]");
  size_t same = 0;
  for (const auto& [id, text] : chinese.text) {
    if (std::regex_search(text, chinese_character)) continue;
    ++same;
    EXPECT_EQ(text.find_first_of(" ") != std::string::npos &&
                  std::count(text.begin(), text.end(), ' ') > 4,
              false)
        << id << " looks like an English sentence: " << text;
  }
  EXPECT_LT(same, chinese.text.size() / 15) << "lines without a Chinese character";
}

TEST(Say, FillsNestedSentences) {
  const Text text = Say(messages::kStepSplit)
                        .with("step", "212 ms")
                        .with("compute", "113 ms")
                        .with("compute_share", "53 %")
                        .with("wait", "81 ms")
                        .with("wait_share", "38 %")
                        .nested("for_what", messages::kForBatch);
  EXPECT_EQ(
      text.text(),
      "Of each 212 ms step it computes 113 ms (53 %) and waits 81 ms (38 %) for the next batch.");
  EXPECT_EQ(render(text, Language::kChinese),
            "每步 212 毫秒里，GPU 计算 113 毫秒（53%），等下一批数据 81 毫秒（38%）。");
}

TEST(Say, UnknownSentencesStayEnglish) {
  Text text;
  text.set_id("no-such-id");
  text.set_text("as it is");
  EXPECT_EQ(render(text, Language::kChinese), "as it is");
}

TEST(Language, FromLocaleNames) {
  EXPECT_EQ(language_of("zh"), Language::kChinese);
  EXPECT_EQ(language_of("zh_TW.UTF-8"), Language::kChinese);
  EXPECT_EQ(language_of("en_US"), Language::kEnglish);
  EXPECT_EQ(language_of(""), Language::kEnglish);
}

TEST(Chinese, TheScreenIsChinese) {
  TextOptions options;
  options.language = Language::kChinese;
  const std::string text = render_text(report_from("input_bound.textproto"), options);
  EXPECT_EQ(text.find("VERDICT"), std::string::npos);
  EXPECT_NE(text.find("GPU 在等数据。"), std::string::npos) << text;
  EXPECT_NE(text.find("2 个数据加载进程一直满载，而 12 个 CPU 核空闲。"), std::string::npos)
      << text;
  EXPECT_NE(text.find("每步 212 -> 132 毫秒：1.61x（1.53-1.67）"), std::string::npos) << text;
}

}  // namespace
}  // namespace idlescope::report
