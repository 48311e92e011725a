#include "tools/similar_word.h"

#include <gtest/gtest.h>

namespace idlescope::tools {
namespace {

TEST(SimilarWord, FindsASlipOfTheFinger) {
  const std::vector<std::string> known = {"record", "report", "compare", "export"};
  EXPECT_EQ(similar_word("reprot", known), "report");
  EXPECT_EQ(similar_word("recrod", known), "record");
  EXPECT_EQ(similar_word("comapre", known), "compare");
  EXPECT_EQ(similar_word("exprot", known), "export");
}

TEST(SimilarWord, SaysNothingOfWhatIsFarOff) {
  EXPECT_EQ(similar_word("train.py", {"record", "report"}), "");
  EXPECT_EQ(similar_word("x", {"report"}), "");
  EXPECT_EQ(similar_word("", {"report"}), "");
  EXPECT_EQ(similar_word(std::string(100'000, 'r'), {"report"}), "");
  EXPECT_EQ(similar_word("report", {}), "");
}

TEST(SimilarWord, WorksForOptions) {
  EXPECT_EQ(similar_word("--formt", {"--format", "--force", "--fail-if"}), "--format");
  EXPECT_EQ(similar_word("--colour", {"--format", "--color"}), "--color");
}

}  // namespace
}  // namespace idlescope::tools
