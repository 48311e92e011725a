#include "analysis/simulate/draws.h"

#include <gtest/gtest.h>

namespace idlescope::simulate {
namespace {

// Values written down once: another machine or compiler must give the same.
TEST(Draws, AreTheSameEverywhere) {
  Draws d(42);
  EXPECT_EQ(d.bits(7, 9), 1260898447296941102U);
  EXPECT_EQ(d.jitter(1000000, 100, 3, 5), 1100253);
  EXPECT_EQ(d.tail(1000000, 800, 3, 5), 1742904);
}

TEST(Draws, DependOnNothingDrawnBefore) {
  Draws a(5);
  Draws b(5);
  a.bits(1, 1);
  a.bits(2, 2);
  EXPECT_EQ(a.bits(3, 3), b.bits(3, 3));
}

TEST(Draws, MeanAndSpreadAreAsAsked) {
  Draws d(1);
  double sum = 0;
  double squares = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    auto x = static_cast<double>(d.jitter(1000000, 100, 8, static_cast<uint64_t>(i)));
    sum += x;
    squares += x * x;
  }
  double mean = sum / kCount;
  EXPECT_NEAR(mean, 1e6, 3e3);
  EXPECT_NEAR(squares / kCount - mean * mean, 1e10, 5e8);
}

TEST(Draws, ScaleRoundsDownAndDoesNotOverflow) {
  EXPECT_EQ(scale(7, 3, 2), 10);
  EXPECT_EQ(scale(-7, 3, 2), -11);
  EXPECT_EQ(scale(INT64_MAX / 2, 4, 8), INT64_MAX / 4);
}

}  // namespace
}  // namespace idlescope::simulate
