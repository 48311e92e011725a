#include "tools/command_search.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace idlescope::tools {
namespace {

class CommandSearch : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/idlescope-search-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
    file("runs", 0755);
    file("text", 0644);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void file(const std::string& name, mode_t mode) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << "echo\n";
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  std::string directory_;
};

TEST_F(CommandSearch, LooksWhereExecWould) {
  EXPECT_EQ(command_error("runs", directory_.c_str()), 0);
  EXPECT_EQ(command_error("runs", ("/nowhere:" + directory_).c_str()), 0);
  EXPECT_EQ(command_error("runs", "/nowhere"), ENOENT);
  EXPECT_EQ(command_error(directory_ + "/runs", "/nowhere"), 0) << "a path is not looked for";
  EXPECT_EQ(command_error("sh", nullptr), 0);
  EXPECT_EQ(command_error("", directory_.c_str()), ENOENT);
}

TEST_F(CommandSearch, TellsNotThereFromNotAllowed) {
  EXPECT_EQ(command_error("text", directory_.c_str()), EACCES);
  EXPECT_EQ(command_error("text", (directory_ + ":/nowhere").c_str()), EACCES);
  EXPECT_EQ(command_error(directory_, nullptr), EACCES) << "a directory";
  EXPECT_EQ(command_error(directory_ + "/missing", nullptr), ENOENT);
  EXPECT_EQ(command_error(directory_ + "/text/below", nullptr), ENOENT);
}

}  // namespace
}  // namespace idlescope::tools
