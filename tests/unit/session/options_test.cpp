#include "profiler/session/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace idlescope::session {
namespace {

class OptionsTest : public ::testing::Test {
 protected:
  // The environment is what the test says and nothing else.
  Options read(const std::map<std::string, std::string>& variables,
               std::vector<const char*> arguments = {"python", "/x/train.py"}) {
    clearenv();
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    Options out;
    strcpy(emit::identity().host, "node7");
    read_options(&out, static_cast<int>(arguments.size()),
                 const_cast<char* const*>(arguments.data()));
    return out;
  }
};

TEST_F(OptionsTest, Defaults) {
  const Options options = read({});
  EXPECT_FALSE(options.disabled);
  EXPECT_FALSE(options.output_was_set);
  EXPECT_STREQ(options.header.window, "auto");
  EXPECT_DOUBLE_EQ(options.header.budget, 0.01);
  EXPECT_EQ(options.header.max_size_bytes, 2'000'000'000u);
  EXPECT_TRUE(options.rank_selected);
  EXPECT_FALSE(options.ranks.known);
  EXPECT_EQ(options.complaint[0], '\0');
  char cwd[4096];
  ASSERT_NE(getcwd(cwd, sizeof cwd), nullptr);
  EXPECT_EQ(std::string(options.output).rfind(std::string(cwd) + "/idlescope-train-", 0), 0u)
      << options.output;
}

TEST_F(OptionsTest, DisableWinsOverAll) {
  EXPECT_TRUE(read({{"IDLESCOPE_DISABLE", "1"}, {"IDLESCOPE_OUTPUT", "/x"}}).disabled);
  EXPECT_FALSE(read({{"IDLESCOPE_DISABLE", "0"}}).disabled);
}

TEST_F(OptionsTest, OutputPatterns) {
  EXPECT_STREQ(
      read({{"IDLESCOPE_OUTPUT", "/data/%h/%r/%q{USER}-100%%"}, {"RANK", "3"}, {"USER", "ada"}})
          .output,
      "/data/node7/3/ada-100%");
  EXPECT_STREQ(read({{"IDLESCOPE_OUTPUT", "/d/%q{NOT_SET}%z%"}}).output, "/d/%z%");
  const std::string relative = read({{"IDLESCOPE_OUTPUT", "runs/a"}}).output;
  EXPECT_EQ(relative[0], '/');
  EXPECT_NE(relative.find("/runs/a"), std::string::npos);
}

TEST_F(OptionsTest, ValuesThatMakeNoSenseAreNamedAndReplaced) {
  const Options window = read({{"IDLESCOPE_WINDOW", "ful"}});
  EXPECT_STREQ(window.header.window, "auto");
  EXPECT_STREQ(window.complaint, "IDLESCOPE_WINDOW=ful");
  EXPECT_STREQ(read({{"IDLESCOPE_BUDGET", "150%"}}).complaint, "IDLESCOPE_BUDGET=150%");
  EXPECT_STREQ(read({{"IDLESCOPE_MAX_SIZE", "big"}}).complaint, "IDLESCOPE_MAX_SIZE=big");
  EXPECT_STREQ(read({{"IDLESCOPE_STEPS", "-4"}}).complaint, "IDLESCOPE_STEPS=-4");
  EXPECT_STREQ(read({{"IDLESCOPE_RANKS", "0,x"}}).complaint, "IDLESCOPE_RANKS=0,x");
}

TEST_F(OptionsTest, GoodValues) {
  const Options options = read({{"IDLESCOPE_WINDOW", "200+50"},
                                {"IDLESCOPE_BUDGET", "2%"},
                                {"IDLESCOPE_MAX_SIZE", "500MB"},
                                {"IDLESCOPE_DURATION", "3m"},
                                {"IDLESCOPE_STEPS", "1000"},
                                {"IDLESCOPE_DETAIL", "full"},
                                {"IDLESCOPE_LOG", "debug"},
                                {"IDLESCOPE_FRAMES", "0"},
                                {"IDLESCOPE_SINK", "append"}});
  EXPECT_EQ(options.complaint[0], '\0');
  EXPECT_STREQ(options.header.window, "200+50");
  EXPECT_DOUBLE_EQ(options.header.budget, 0.02);
  EXPECT_EQ(options.header.max_size_bytes, 500'000'000u);
  EXPECT_EQ(options.duration_ns, int64_t{180} * 1'000'000'000);
  EXPECT_EQ(options.steps, 1000u);
  EXPECT_STREQ(options.header.detail, "full");
  EXPECT_EQ(options.log, LogLevel::kDebug);
  EXPECT_FALSE(options.sample_frames);
  EXPECT_TRUE(options.append_sink);
}

TEST_F(OptionsTest, RanksOfLaunchers) {
  const Options torchrun = read(
      {{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}, {"TORCHELASTIC_RUN_ID", "job7"}});
  EXPECT_TRUE(torchrun.ranks.known);
  EXPECT_EQ(torchrun.ranks.rank, 5);
  EXPECT_EQ(torchrun.ranks.local_rank, 1);
  EXPECT_EQ(torchrun.ranks.world_size, 8);
  EXPECT_STREQ(torchrun.ranks.job_id, "job7");
  const Options slurm = read({{"SLURM_PROCID", "2"},
                              {"SLURM_LOCALID", "0"},
                              {"SLURM_NTASKS", "4"},
                              {"SLURM_JOB_ID", "991"},
                              {"SLURM_STEP_ID", "0"}});
  EXPECT_TRUE(slurm.ranks.known);
  EXPECT_EQ(slurm.ranks.rank, 2);
  EXPECT_STREQ(slurm.ranks.job_id, "991.0");
  EXPECT_NE(std::string(slurm.output).find("/idlescope-train-991.0"), std::string::npos);
  // One task under Slurm, an interactive shell: not a distributed job.
  EXPECT_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).ranks.known);
  const Options mpi = read({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_TRUE(mpi.ranks.known);
  EXPECT_EQ(mpi.ranks.rank, 1);
}

TEST_F(OptionsTest, OnlyTheChosenRanksRecord) {
  EXPECT_TRUE(read({{"IDLESCOPE_RANKS", "0,2"}, {"RANK", "2"}}).rank_selected);
  EXPECT_FALSE(read({{"IDLESCOPE_RANKS", "0,2"}, {"RANK", "1"}}).rank_selected);
  EXPECT_TRUE(read({{"IDLESCOPE_RANKS", "all"}, {"RANK", "1"}}).rank_selected);
  // Not a rank at all: the launcher itself, a single process.
  EXPECT_TRUE(read({{"IDLESCOPE_RANKS", "0"}}).rank_selected);
}

TEST(ParseTest, Bytes) {
  uint64_t out = 0;
  const std::pair<const char*, uint64_t> good[] = {
      {"0", 0},          {"1048576", 1048576}, {"2GB", 2'000'000'000}, {"2g", 2'000'000'000},
      {"64 KiB", 65536}, {"1.5M", 1'500'000},  {"1TiB", 1ull << 40}};
  for (const auto& [text, value] : good) {
    EXPECT_TRUE(parse_bytes(text, &out)) << text;
    EXPECT_EQ(out, value) << text;
  }
  for (const char* text : {"", "GB", "-1", "1X", "2GBs", "nan", "1e30"}) {
    EXPECT_FALSE(parse_bytes(text, &out)) << text;
  }
}

TEST(ParseTest, Durations) {
  int64_t out = 0;
  EXPECT_TRUE(parse_duration("90", &out));
  EXPECT_EQ(out, int64_t{90'000'000'000});
  EXPECT_TRUE(parse_duration("250ms", &out));
  EXPECT_EQ(out, 250'000'000);
  EXPECT_TRUE(parse_duration("1.5h", &out));
  EXPECT_EQ(out, int64_t{5400} * 1'000'000'000);
  for (const char* text : {"", "m", "3x", "-1", "1e30"}) EXPECT_FALSE(parse_duration(text, &out));
}

TEST(ParseTest, Ranks) {
  int32_t out[8];
  size_t count = 0;
  EXPECT_TRUE(parse_ranks("0,4-6", out, 8, &count));
  ASSERT_EQ(count, 4u);
  EXPECT_EQ(out[3], 6);
  for (const char* text : {"", "a", "1,", "3-1", "-1", "0-100"}) {
    EXPECT_FALSE(parse_ranks(text, out, 8, &count)) << text;
  }
}

TEST(ParseTest, Windows) {
  for (const char* text : {"auto", "full", "off", "0+1", "200+50"}) EXPECT_TRUE(valid_window(text));
  for (const char* text : {"", "on", "5", "5+", "+5", "5+0", "5+x"}) {
    EXPECT_FALSE(valid_window(text)) << text;
  }
}

TEST(DirectoryNameTest, NamesTheScript) {
  const auto name = [](std::vector<const char*> arguments, const char* job = "") {
    char out[256];
    default_directory_name(out, sizeof out, static_cast<int>(arguments.size()),
                           const_cast<char* const*>(arguments.data()), 0, job);
    return std::string(out);
  };
  EXPECT_EQ(name({"python", "-u", "/a/b/train.py", "x.py"}, "7.0"), "idlescope-train-7.0");
  EXPECT_EQ(name({"python", "-m", "pkg.train"}, "7.0"), "idlescope-pkg.train-7.0");
  EXPECT_EQ(name({"bash", "run me.sh"}, "7.0"), "idlescope-run-me-7.0");
  EXPECT_EQ(name({"/opt/bin/trainer"}, "7.0"), "idlescope-trainer-7.0");
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(name({"trainer"}), "idlescope-trainer-0101-000000");
}

}  // namespace
}  // namespace idlescope::session
