#include "tools/units.h"

#include <gtest/gtest.h>

namespace idlescope::tools {
namespace {

TEST(Units, DurationsAsTimeoutTakesThem) {
  EXPECT_EQ(parse_duration_s("90"), 90);
  EXPECT_EQ(parse_duration_s("90s"), 90);
  EXPECT_EQ(parse_duration_s("1.5m"), 90);
  EXPECT_EQ(parse_duration_s("2h"), 7200);
  EXPECT_EQ(parse_duration_s("1d"), 86400);
  for (const char* bad : {"", "s", "3x", "3 m", "-1s", "1m30s", "inf", "nan", "0x10"}) {
    EXPECT_FALSE(parse_duration_s(bad)) << bad;
  }
}

TEST(Units, SizesInPowersOf1000And1024) {
  EXPECT_EQ(parse_size_bytes("123"), 123u);
  EXPECT_EQ(parse_size_bytes("2G"), 2'000'000'000u);
  EXPECT_EQ(parse_size_bytes("2GB"), 2'000'000'000u);
  EXPECT_EQ(parse_size_bytes("1.5k"), 1500u);
  EXPECT_EQ(parse_size_bytes("1Mi"), 1048576u);
  EXPECT_EQ(parse_size_bytes("1MiB"), 1048576u);
  for (const char* bad : {"", "G", "2GG", "2 G", "-2G", "2X", "99999999T"}) {
    EXPECT_FALSE(parse_size_bytes(bad)) << bad;
  }
}

TEST(Units, SharesAsPercentOrFraction) {
  EXPECT_DOUBLE_EQ(*parse_share("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*parse_share("0.01"), 0.01);
  EXPECT_DOUBLE_EQ(*parse_share("0"), 0);
  for (const char* bad : {"", "%", "2", "101%", "-1%", "1 %"})
    EXPECT_FALSE(parse_share(bad)) << bad;
}

TEST(Units, FormatsForOneLine) {
  EXPECT_EQ(format_duration(0.44), "0.4 s");
  EXPECT_EQ(format_duration(59.2), "59 s");
  EXPECT_EQ(format_duration(372), "6 min 12 s");
  EXPECT_EQ(format_duration(7260), "2 h 1 min");
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(9'600'000), "9.6 MB");
  EXPECT_EQ(format_size(2'000'000'000), "2 GB");
  EXPECT_EQ(format_size(999'999), "1 MB");
  EXPECT_EQ(format_size(123'456'789), "123 MB");
  EXPECT_EQ(format_share(0.006), "0.6 %");
  EXPECT_EQ(count_of(1, "process", "processes"), "1 process");
  EXPECT_EQ(count_of(0, "process", "processes"), "0 processes");
}

}  // namespace
}  // namespace idlescope::tools
