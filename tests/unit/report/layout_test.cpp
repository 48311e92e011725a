// Columns, wrapping, bars, shortening.
#include "analysis/report/layout.h"

#include <gtest/gtest.h>

namespace idlescope::report {
namespace {

using Lines = std::vector<std::string>;

TEST(Columns, ChineseTakesTwo) {
  EXPECT_EQ(columns("abc"), 3u);
  EXPECT_EQ(columns("数据"), 4u);
  EXPECT_EQ(columns("…█"), 2u);
  EXPECT_EQ(columns("\xff\xfe"), 2u) << "broken bytes count one each";
  EXPECT_EQ(columns("\xe6\x95"), 2u) << "cut in the middle of a character";
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(wrap("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one two three", 13), (Lines{"one two three"}));
  EXPECT_EQ(wrap("", 10), (Lines{""}));
  EXPECT_EQ(wrap("abcdefghijkl", 10), (Lines{"abcdefghij", "kl"}));
  EXPECT_EQ(wrap("a  b", 10), (Lines{"a b"}));
  EXPECT_EQ(wrap("it took 91 ms then", 12), (Lines{"it took", "91 ms then"}));
  EXPECT_EQ(wrap("in 91 minutes", 9), (Lines{"in 91", "minutes"})) << "a word, not a unit";
  EXPECT_EQ(wrap("first\nsecond", 20), (Lines{"first", "second"}));
}

TEST(Wrap, ChineseBreaksAnywhereButNotBeforeAFullStop) {
  const Lines lines = wrap("数据加载进程很忙。", 8);
  for (const std::string& line : lines) {
    EXPECT_LE(columns(line), 8u + 2u) << line;
    EXPECT_NE(line.substr(0, 3), "。");
  }
  std::string joined;
  for (const std::string& line : lines) joined += line;
  EXPECT_EQ(joined, "数据加载进程很忙。");
}

TEST(Bar, RoundsToColumnsOrEighths) {
  EXPECT_EQ(bar(2.6, false), "###");
  EXPECT_EQ(bar(0.3, false), "");
  EXPECT_EQ(bar(2.5, true), "██▌");
  EXPECT_EQ(bar(0.001, true), "▏") << "something is never nothing";
  EXPECT_EQ(bar(0, true), "");
  EXPECT_EQ(bar(-1, true), "");
}

TEST(Shorten, KeepsBothEnds) {
  EXPECT_EQ(shorten("short", 10, false), "short");
  EXPECT_EQ(shorten("abcdefghijklmnop", 9, false), "abc...nop");
  EXPECT_EQ(shorten("abcdefghijklmnop", 9, true), "abcd…mnop");
  EXPECT_LE(columns(shorten("数据加载进程很忙了", 9, true)), 9u);
}

TEST(Printable, HidesControlCharactersAndDirectionMarks) {
  EXPECT_EQ(printable("a\tb\x1b[1mc"), "a?b?[1mc");
  EXPECT_EQ(printable("a\nb\r"), "a\nb?");
  EXPECT_EQ(printable("数据"), "数据");
  EXPECT_EQ(printable("x\xe2\x80\xaey"), "x?y") << "right-to-left override";
  EXPECT_EQ(printable("\xc2\x9b"), "?") << "C1 control";
}

}  // namespace
}  // namespace idlescope::report
