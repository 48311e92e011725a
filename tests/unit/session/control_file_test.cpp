// Commands of `idlescope ctl` as the drain thread finds them in the recording directory.
#include "profiler/session/control_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "profiler/session/device_state.h"

namespace idlescope::session {
namespace {

class Control : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "idlescope_control_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/" + kControlFileName;
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  void append(const std::string& text) {
    std::FILE* file = std::fopen(path_.c_str(), "a");
    ASSERT_NE(file, nullptr);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  std::vector<std::string> look(ControlFile* file) {
    std::vector<std::string> seen;
    now_ns_ += ControlFile::kLookNs;
    file->look(now_ns_, [&](const ControlCommand& command) {
      seen.push_back((command.start ? "start " : "stop ") + std::to_string(command.at_step));
    });
    return seen;
  }
  std::string folder_;
  std::string path_;
  int64_t now_ns_ = 0;
};
using Seen = std::vector<std::string>;

TEST_F(Control, CommandsComeOnceAndInOrder) {
  ControlFile file(folder_.c_str());
  EXPECT_EQ(look(&file), Seen{});
  append("start\nstop\n");
  EXPECT_EQ(look(&file), (Seen{"start 0", "stop 0"}));
  EXPECT_EQ(look(&file), Seen{});
  append("start 1200\n");
  EXPECT_EQ(look(&file), (Seen{"start 1200"}));
}

TEST_F(Control, LooksFiveTimesASecond) {
  ControlFile file(folder_.c_str());
  EXPECT_EQ(look(&file), Seen{});
  append("start\n");
  int taken = 0;
  file.look(now_ns_ + 1, [&](const ControlCommand&) { ++taken; });
  EXPECT_EQ(taken, 0);
  file.look(now_ns_ + ControlFile::kLookNs, [&](const ControlCommand&) { ++taken; });
  EXPECT_EQ(taken, 1);
}

TEST_F(Control, WhoComesLateJoinsWhatIsGoingOn) {
  append("start\nstop\nstart\n");
  ControlFile late(folder_.c_str());
  EXPECT_EQ(look(&late), (Seen{"start 0"}));
  append("stop\n");
  EXPECT_EQ(look(&late), (Seen{"stop 0"}));
}

TEST_F(Control, HalfALineIsReadWhenItIsWhole) {
  ControlFile file(folder_.c_str());
  look(&file);
  append("start\nst");
  EXPECT_EQ(look(&file), (Seen{"start 0"}));
  append("op\n");
  EXPECT_EQ(look(&file), (Seen{"stop 0"}));
}

TEST_F(Control, NonsenseIsSkipped) {
  ControlFile file(folder_.c_str());
  look(&file);
  append("halt\nstart x\nstart 99999999999999999999\n\nstart 7 \nstop\r\n");
  EXPECT_EQ(look(&file), (Seen{"start 7", "stop 0"}));
}

TEST_F(Control, AHugeFileCountsByItsEnd) {
  ControlFile file(folder_.c_str());
  look(&file);
  for (int i = 0; i < 300; ++i) append("start 123456789012345\n");
  append("stop\n");
  const Seen seen = look(&file);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), "stop 0");
  EXPECT_EQ(seen.front(), "start 123456789012345");
}

TEST_F(Control, AFileThatBeganAnewIsReadFromItsBegin) {
  ControlFile file(folder_.c_str());
  look(&file);
  append("start 111\n");
  look(&file);
  unlink(path_.c_str());
  append("stop\n");
  EXPECT_EQ(look(&file), (Seen{"stop 0"}));
}

TEST_F(Control, OnlyAPlainFileCounts) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ControlFile file(folder_.c_str());
  EXPECT_EQ(look(&file), Seen{});
  unlink(path_.c_str());
  const std::string other = folder_ + "/other";
  ASSERT_EQ(symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_EQ(look(&file), Seen{});
}

TEST(Wishes, KeepTheirOrderAndNumber) {
  std::atomic<uint64_t> wishes{0};
  uint64_t seen = 0;
  push_wish(&wishes, true);
  push_wish(&wishes, false);
  push_wish(&wishes, true);
  EXPECT_EQ(new_wishes(seen, wishes.load()), 3u);
  EXPECT_EQ(wishes.load() & 7, 5u);
  seen = wishes.load();
  EXPECT_EQ(new_wishes(seen, wishes.load()), 0u);
  for (int i = 0; i < 70000; ++i) push_wish(&wishes, i % 2 == 1);
  EXPECT_EQ(new_wishes(seen, wishes.load()), kWishBits);
  EXPECT_EQ(wishes.load() & 1, 1u);
}

}  // namespace
}  // namespace idlescope::session
