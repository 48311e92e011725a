#include "profiler/emit/name_table.h"

#include <gtest/gtest.h>

#include <string>

namespace idlescope::emit {
namespace {

std::string cleaned(const std::string& text, size_t capacity = 100) {
  std::string out(capacity, '\0');
  out.resize(utf8_copy(out.data(), capacity, text.data(), text.size()));
  return out;
}

TEST(Utf8CopyTest, KeepsValidText) {
  for (const char* text : {"", "plain", "größe", "数据", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(cleaned(text), text);
  }
}

TEST(Utf8CopyTest, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(cleaned("a\xff"
                    "b"),
            "a?b");
  EXPECT_EQ(cleaned("\xc0\x80"), "??");            // overlong
  EXPECT_EQ(cleaned("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(cleaned("\xf4\x90\x80\x80"), "????");  // above U+10FFFF
  EXPECT_EQ(cleaned("cut \xe6\x95"), "cut ??");    // cut in a character
  EXPECT_EQ(cleaned("\x80 alone"), "? alone");
}

TEST(Utf8CopyTest, CutsBetweenCharacters) {
  EXPECT_EQ(cleaned("数据", 5), "数");
  EXPECT_EQ(cleaned("abc", 2), "ab");
}

TEST(NameTableTest, GivesDenseIdsOncePerText) {
  NameTable table;
  for (uint32_t i = 0; i < 5000; ++i) {
    const std::string text = "name " + std::to_string(i);
    const NameTable::Answer answer = table.find_or_add(text.data(), text.size());
    EXPECT_TRUE(answer.is_new);
    EXPECT_EQ(answer.id, i + 1);
  }
  for (uint32_t i = 0; i < 5000; ++i) {
    const std::string text = "name " + std::to_string(i);
    const NameTable::Answer answer = table.find_or_add(text.data(), text.size());
    EXPECT_FALSE(answer.is_new);
    EXPECT_EQ(answer.id, i + 1);
  }
}

TEST(NameTableTest, ADroppedNameIsNewAgain) {
  NameTable table;
  table.find_or_add("a", 1);
  EXPECT_EQ(table.find_or_add("b", 1).id, 2u);
  table.drop_newest();
  const NameTable::Answer again = table.find_or_add("b", 1);
  EXPECT_TRUE(again.is_new);
  EXPECT_EQ(again.id, 2u);
}

TEST(NameTableTest, ClearForgets) {
  NameTable table;
  table.find_or_add("a", 1);
  table.clear();
  EXPECT_TRUE(table.find_or_add("b", 1).is_new);
  EXPECT_TRUE(table.find_or_add("a", 1).is_new);
}

}  // namespace
}  // namespace idlescope::emit
