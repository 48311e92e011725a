#include "tools/record_options.h"

#include <gtest/gtest.h>

#include <map>

namespace idlescope::tools {
namespace {

using Variables = std::map<std::string, std::string>;

tl::expected<RecordPlan, std::string> plan(const RecordOptions& options,
                                           const JobIdentity& identity = {},
                                           const Variables& variables = {}) {
  return plan_recording(options, identity, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(RecordOptions, DefaultsSetOnlyTheLimit) {
  const auto made = plan({});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->settings, (Settings{{"IDLESCOPE_MAX_SIZE", "2000000000"}}));
  EXPECT_TRUE(made->speaks);
}

TEST(RecordOptions, FlagsReachTheRecorderInOnePlainForm) {
  RecordOptions options;
  options.duration = "3m";
  options.steps = "200";
  options.ranks = "0-2,8";
  options.window = "100+20";
  options.budget = "1%";
  options.max_size = "500M";
  options.lang = "zh";
  options.detail = "full";
  options.quiet = true;
  const auto made = plan(options);
  ASSERT_TRUE(made) << made.error();
  EXPECT_EQ(made->settings, (Settings{{"IDLESCOPE_BUDGET", "0.01"},
                                      {"IDLESCOPE_DETAIL", "full"},
                                      {"IDLESCOPE_DURATION", "180"},
                                      {"IDLESCOPE_LANG", "zh"},
                                      {"IDLESCOPE_LOG", "error"},
                                      {"IDLESCOPE_MAX_SIZE", "500000000"},
                                      {"IDLESCOPE_RANKS", "0,1,2,8"},
                                      {"IDLESCOPE_STEPS", "200"},
                                      {"IDLESCOPE_WINDOW", "100+20"}}));
  EXPECT_EQ(made->stop_after_s, 0) << "the job goes on";
}

TEST(RecordOptions, AFlagWinsOverTheVariable) {
  RecordOptions options;
  options.steps = "5";
  const auto made = plan(options, {}, {{"IDLESCOPE_STEPS", "9"}, {"IDLESCOPE_DURATION", "1m"}});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->settings.at("IDLESCOPE_STEPS"), "5");
  EXPECT_EQ(made->settings.at("IDLESCOPE_DURATION"), "60");
}

TEST(RecordOptions, StopJobNeedsALimit) {
  RecordOptions options;
  options.stop_job = true;
  EXPECT_FALSE(plan(options));
  options.duration = "2s";
  ASSERT_TRUE(plan(options));
  EXPECT_EQ(plan(options)->stop_after_s, 2);
}

TEST(RecordOptions, OnlyTheAskedRanksRecordAndOneSpeaks) {
  RecordOptions options;
  options.ranks = "2,5";
  JobIdentity identity;
  identity.rank = 5;
  EXPECT_TRUE(plan(options, identity)->records_this_rank);
  EXPECT_FALSE(plan(options, identity)->speaks);
  identity.rank = 2;
  EXPECT_TRUE(plan(options, identity)->speaks);
  identity.rank = 0;
  EXPECT_FALSE(plan(options, identity)->records_this_rank);
}

TEST(RecordOptions, EveryBadValueIsNamed) {
  const std::pair<std::string RecordOptions::*, const char*> kBad[] = {
      {&RecordOptions::duration, "soon"}, {&RecordOptions::duration, "0"},
      {&RecordOptions::steps, "0"},       {&RecordOptions::steps, "ten"},
      {&RecordOptions::ranks, "0,"},      {&RecordOptions::ranks, "3-1"},
      {&RecordOptions::window, "20"},     {&RecordOptions::window, "5+0"},
      {&RecordOptions::budget, "200%"},   {&RecordOptions::max_size, "0"},
      {&RecordOptions::max_size, "big"},  {&RecordOptions::detail, "some"},
  };
  for (const auto& [member, value] : kBad) {
    RecordOptions options;
    options.*member = value;
    const auto made = plan(options);
    ASSERT_FALSE(made) << value;
    EXPECT_NE(made.error().find(value), std::string::npos) << made.error();
    EXPECT_NE(made.error().find("expected"), std::string::npos) << made.error();
  }
}

}  // namespace
}  // namespace idlescope::tools
