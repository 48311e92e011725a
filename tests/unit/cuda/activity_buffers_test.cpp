#include "profiler/cuda/activity_buffers.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace idlescope::cuda {
namespace {

TEST(ActivityBuffers, ComeBackInOrderAndAreUsedAgain) {
  const auto buffers = std::make_unique<ActivityBuffers>();
  std::vector<uint8_t*> given;
  size_t size = 0;
  for (int i = 0; i < 3; ++i) given.push_back(buffers->request(&size));
  EXPECT_EQ(size, ActivityBuffers::kBufferBytes);
  EXPECT_EQ(buffers->held(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(buffers->complete(given[i], 100 + i));
  EXPECT_EQ(buffers->held(), 0u);
  std::vector<size_t> valid;
  buffers->drain(
      [] {}, [&](const ActivityBuffers::Filled& filled) { valid.push_back(filled.valid_bytes); });
  EXPECT_EQ(valid, (std::vector<size_t>{100, 101, 102}));
  const std::set<uint8_t*> known(given.begin(), given.end());
  EXPECT_TRUE(known.count(buffers->request(&size)));
}

TEST(ActivityBuffers, RefuseWhatIsNotTheirs) {
  const auto buffers = std::make_unique<ActivityBuffers>();
  std::vector<uint8_t> foreign(4096);
  EXPECT_FALSE(buffers->complete(foreign.data() + 1024, 10));
  size_t size = 0;
  uint8_t* mine = buffers->request(&size);
  EXPECT_TRUE(buffers->complete(mine, size + 999));
  EXPECT_FALSE(buffers->complete(mine, 10)) << "twice";
  buffers->drain(
      [] {}, [&](const ActivityBuffers::Filled& filled) { EXPECT_EQ(filled.valid_bytes, size); });
}

TEST(ActivityBuffers, AreBounded) {
  const auto buffers = std::make_unique<ActivityBuffers>();
  size_t size = 0;
  for (uint32_t i = 0; i < ActivityBuffers::kMaxBuffers; ++i) {
    ASSERT_NE(buffers->request(&size), nullptr);
  }
  EXPECT_EQ(buffers->request(&size), nullptr);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(buffers->forget_held(), ActivityBuffers::kMaxBuffers);
  EXPECT_NE(buffers->request(&size), nullptr);
}

}  // namespace
}  // namespace idlescope::cuda
