#include "tools/recorder_library.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace idlescope::tools {
namespace {

TEST(RecorderLibrary, LooksBesideTheProgramAndInTheLibFoldersOfItsPrefix) {
  const std::vector<std::string> candidates = library_candidates("/opt/x/bin", nullptr);
  EXPECT_EQ(candidates[0], "/opt/x/bin/libidlescope.so");
  EXPECT_EQ(candidates[1], "/opt/x/lib/libidlescope.so");
}

TEST(RecorderLibrary, TheVariableIsTheOnlyPlaceWhenSet) {
  EXPECT_EQ(library_candidates("/opt/x/bin", "/l.so"), std::vector<std::string>{"/l.so"});
  EXPECT_GT(library_candidates("/opt/x/bin", "").size(), 1u);
}

TEST(RecorderLibrary, SaysWhyALibraryCannotBeLoaded) {
  char name[] = "/tmp/idlescope_test_XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  const std::string garbage = (folder / "libidlescope.so").string();
  std::ofstream(garbage) << std::string(4096, 'x');
  setenv("IDLESCOPE_LIBRARY", garbage.c_str(), 1);
  auto found = find_recorder_library();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().reason.find("ELF"), std::string::npos) << found.error().reason;

  const std::filesystem::path spaced = folder / "with space";
  std::filesystem::create_directory(spaced);
  std::ofstream(spaced / "libidlescope.so") << "x";
  setenv("IDLESCOPE_LIBRARY", (spaced / "libidlescope.so").c_str(), 1);
  found = find_recorder_library();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().reason.find("space"), std::string::npos) << found.error().reason;

  setenv("IDLESCOPE_LIBRARY", (folder / "absent.so").c_str(), 1);
  found = find_recorder_library();
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().reason.empty());
  EXPECT_NE(found.error().looked_at.find("absent.so"), std::string::npos);
  unsetenv("IDLESCOPE_LIBRARY");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace idlescope::tools
