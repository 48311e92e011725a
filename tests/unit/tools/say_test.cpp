#include "tools/say.h"

#include <gtest/gtest.h>

namespace idlescope::tools {
namespace {

TEST(Wrap, KeepsShortTextsOnOneLine) {
  EXPECT_EQ(wrap("a short line", "idlescope: ", "           "), "idlescope: a short line\n");
  EXPECT_EQ(wrap("", "> ", "  "), "> \n");
}

TEST(Wrap, BreaksBetweenWordsAtTheLimit) {
  EXPECT_EQ(wrap("aaa bbb ccc", "> ", "  ", 9), "> aaa bbb\n  ccc\n");
  EXPECT_EQ(wrap("aaa bbb ccc", "> ", "  ", 8), "> aaa\n  bbb\n  ccc\n");
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

}  // namespace
}  // namespace idlescope::tools
