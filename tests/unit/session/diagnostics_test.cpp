#include "profiler/session/diagnostics.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace idlescope::session {
namespace {

std::string filled(const char* pattern, std::initializer_list<MessageValue> values,
                   size_t capacity = 200) {
  std::string out(capacity, 'x');
  const size_t size =
      fill_message(out.data(), capacity, pattern, strlen(pattern), values.begin(), values.size());
  EXPECT_EQ(out[size], '\0');
  return out.substr(0, size);
}

TEST(FillMessageTest, PutsValuesIn) {
  EXPECT_EQ(filled("cannot write {path}: {reason}", {{"path", "/x"}, {"reason", "no"}}),
            "cannot write /x: no");
  EXPECT_EQ(filled("{a}{a}{b", {{"a", "1"}}), "11{b");
  EXPECT_EQ(filled("{missing} stays", {}), "{missing} stays");
}

TEST(FillMessageTest, StopsAtTheEndOfItsRoom) {
  EXPECT_EQ(filled("{a} tail", {{"a", "0123456789"}}, 6), "01234");
}

TEST(ComplainTest, OneLineAProcess) {
  testing::internal::CaptureStderr();
  const MessageValue values[] = {{"path", "/x/y"}, {"reason", "permission denied"}};
  complain_once("output-failed", values, 2);
  complain_once("output-failed", values, 2);
  complain_once("disk-full", values, 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "idlescope: [output-failed] cannot write /x/y: permission denied; this process records "
            "nothing more, the job goes on\n");
}

}  // namespace
}  // namespace idlescope::session
