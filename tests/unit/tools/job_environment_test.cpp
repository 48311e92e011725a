#include "tools/job_environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace idlescope::tools {
namespace {

using Words = std::vector<std::string>;

Words sorted(Words words) {
  std::sort(words.begin(), words.end());
  return words;
}

TEST(JobEnvironment, AddsOursAndKeepsEverythingElse) {
  const char* environ[] = {"PATH=/bin", "X=a=b", "EMPTY=", nullptr};
  EXPECT_EQ(sorted(job_environment(environ, {{"IDLESCOPE_OUTPUT", "/d"}}, "/l.so")),
            sorted({"PATH=/bin", "X=a=b", "EMPTY=", "IDLESCOPE_OUTPUT=/d", "LD_PRELOAD=/l.so"}));
}

TEST(JobEnvironment, KeepsAForeignPreloadBehindOurs) {
  const char* environ[] = {"LD_PRELOAD=/site.so:/other.so", nullptr};
  EXPECT_EQ(job_environment(environ, {}, "/l.so"), Words{"LD_PRELOAD=/l.so:/site.so:/other.so"});
}

TEST(JobEnvironment, PreloadsOnlyOnce) {
  const char* environ[] = {"LD_PRELOAD=/site.so /l.so", nullptr};
  EXPECT_EQ(job_environment(environ, {}, "/l.so"), Words{"LD_PRELOAD=/site.so /l.so"});
  // A longer path that starts alike is another library.
  const char* other[] = {"LD_PRELOAD=/l.so.1", nullptr};
  EXPECT_EQ(job_environment(other, {}, "/l.so"), Words{"LD_PRELOAD=/l.so:/l.so.1"});
}

TEST(JobEnvironment, AnEmptyPreloadLeavesNoColon) {
  const char* environ[] = {"LD_PRELOAD=", nullptr};
  EXPECT_EQ(job_environment(environ, {}, "/l.so"), Words{"LD_PRELOAD=/l.so"});
}

TEST(JobEnvironment, WithoutALibraryThePreloadIsUntouched) {
  const char* environ[] = {"LD_PRELOAD=/site.so", "IDLESCOPE_STEPS=3", nullptr};
  EXPECT_EQ(sorted(job_environment(environ, {{"IDLESCOPE_STEPS", "5"}}, "")),
            sorted({"LD_PRELOAD=/site.so", "IDLESCOPE_STEPS=5"}));
}

}  // namespace
}  // namespace idlescope::tools
