#include "tools/run_file.h"

#include <gtest/gtest.h>

namespace idlescope::tools {
namespace {

TEST(RunFile, NamesPerRank) {
  JobIdentity identity;
  EXPECT_EQ(run_file_name(identity), "run.json");
  identity.rank = 0;
  EXPECT_EQ(run_file_name(identity), "run.json");
  identity.rank = 12;
  EXPECT_EQ(run_file_name(identity), "run-12.json");
}

TEST(RunFile, KnowsItsOwnNamesOnly) {
  for (const char* name :
       {"run.json", "run-0.json", "run-12.json", "run.json.new", "run-3.json.new"}) {
    EXPECT_TRUE(is_run_file_name(name)) << name;
  }
  for (const char* name :
       {"runs.json", "run-.json", "run-a.json", "run-1.jsonx", "myrun.json", ""}) {
    EXPECT_FALSE(is_run_file_name(name)) << name;
  }
}

TEST(Utf8, GoodTextStaysBadBytesAreReplaced) {
  EXPECT_EQ(to_utf8("train.py \xC3\xA9 \xE6\x95\xB0 \xF0\x9F\x98\x80"),
            "train.py \xC3\xA9 \xE6\x95\xB0 \xF0\x9F\x98\x80");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(to_utf8("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(to_utf8("a\xC3"), "a" + bad);                         // cut
  EXPECT_EQ(to_utf8("\xC0\x80"), bad + bad);                      // overlong
  EXPECT_EQ(to_utf8("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(to_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // beyond U+10FFFF
}

}  // namespace
}  // namespace idlescope::tools
