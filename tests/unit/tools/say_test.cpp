#include "tools/say.h"

#include <gtest/gtest.h>

#include "proto/messages.h"

namespace idlescope::tools {
namespace {

TEST(Wrap, KeepsShortTextsOnOneLine) {
  EXPECT_EQ(wrap("a short line", "idlescope: ", "           "), "idlescope: a short line\n");
  EXPECT_EQ(wrap("", "> ", "  "), "> \n");
}

TEST(Wrap, BreaksBetweenWordsAtTheLimit) {
  EXPECT_EQ(wrap("aaaa bbbb cccc", "> ", "  ", 11), "> aaaa bbbb\n  cccc\n");
  EXPECT_EQ(wrap("aaaa bbbb cccc", "> ", "  ", 10), "> aaaa\n  bbbb\n  cccc\n");
}

TEST(Wrap, NeverCutsAWord) {
  EXPECT_EQ(wrap("/a/very/long/path b", "> ", "  ", 8), "> /a/very/long/path\n  b\n");
}

TEST(Wrap, KeepsLineBreaksOfTheText) {
  EXPECT_EQ(wrap("one\ntwo three", "> ", "  ", 80), "> one\n  two three\n");
}

TEST(Wrap, CountsColumnsNotBytes) {
  // Nine two-byte letters are nine columns.
  EXPECT_EQ(wrap("ééé ééé é", "", "", 9), "ééé ééé é\n");
}

TEST(Wrap, BreaksChineseBetweenCharactersAndCountsTheirWidth) {
  EXPECT_EQ(wrap("任务还在运行；以下是", "> ", "  ", 14), "> 任务还在运\n  行；以下是\n");
}

TEST(Words, FollowTheLanguageThatWasChosen) {
  const messages::Values values = {{"path", "/run7"}, {"reason", "No space left on device"}};
  EXPECT_EQ(words(messages::kCannotWrite, values),
            "cannot write to /run7: No space left on device");
  speak(report::Language::kChinese);
  EXPECT_EQ(words(messages::kCannotWrite, values), "无法写入 /run7：No space left on device");
  EXPECT_EQ(words(messages::kDoctorWorks), "可用");
  speak(report::Language::kEnglish);
  EXPECT_EQ(words(messages::kDoctorWorks), "works");
}

}  // namespace
}  // namespace idlescope::tools
