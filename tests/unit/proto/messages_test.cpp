// The catalogue: ids are unique and well formed, values are filled in.
#include "proto/messages.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "proto/fill.h"

namespace idlescope::messages {
namespace {

TEST(Messages, IdsAreUniqueAndKebabCase) {
  std::set<std::string_view> seen;
  for (const Message& message : kAll) {
    EXPECT_TRUE(seen.insert(message.id).second) << "twice: " << message.id;
    EXPECT_FALSE(message.text.empty()) << message.id;
    for (const char c : message.id) {
      EXPECT_TRUE((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-') << message.id;
    }
  }
}

TEST(Messages, BracesAreBalanced) {
  for (const Message& message : kAll) {
    int depth = 0;
    for (const char c : message.text) {
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      EXPECT_GE(depth, 0) << message.id;
      EXPECT_LE(depth, 1) << message.id;
    }
    EXPECT_EQ(depth, 0) << message.id;
  }
}

TEST(Messages, FindKnowsEveryIdAndNoOther) {
  for (const Message& message : kAll) ASSERT_NE(find(message.id), nullptr) << message.id;
  EXPECT_EQ(find("no-such-id"), nullptr);
}

TEST(Fill, PutsValuesInAndLeavesUnknownNames) {
  EXPECT_EQ(fill("{a} of {b}{c}", {{"a", "3"}, {"b", "{x}"}}), "3 of {x}{c}");
  EXPECT_EQ(fill("no values", {}), "no values");
  EXPECT_EQ(fill("open {a", {{"a", "1"}}), "open {a");
}

}  // namespace
}  // namespace idlescope::messages
