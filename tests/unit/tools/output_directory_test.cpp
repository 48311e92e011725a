#include "tools/output_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "proto/run.pb.h"
#include "tools/run_file.h"

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

TEST(ScriptName, IsWhatTheUserCallsTheJob) {
  const std::pair<const char*, const char*> kCases[] = {
      {"python train.py", "train"},
      {"python -u /home/x/train.py --data a.py", "train"},
      {"torchrun --nproc-per-node 8 train.py", "train"},
      {"python -m torch.distributed.run --nproc 2 train.py", "train"},
      {"python -m pkg.finetune --epochs 1", "finetune"},
      {"bash run.sh", "run"},
      {"accelerate launch --config c.yaml a/b/fit.py", "fit"},
      {"./a.out", "a.out"},
      {"/usr/bin/python3 --version", "python3"},
      {"./my\xC3\xA9 x", "my__"},
  };
  for (const auto& [line, name] : kCases) EXPECT_EQ(script_name(words(line)), name) << line;
}

TEST(DefaultName, CarriesTheTimeOrTheJob) {
  std::tm time{};
  time.tm_mon = 10;
  time.tm_mday = 30;
  time.tm_hour = 14;
  time.tm_min = 12;
  time.tm_sec = 7;
  EXPECT_EQ(default_directory_name(words("python train.py"), {}, time),
            "idlescope-train-1130-141207");
  JobIdentity slurm;
  slurm.job_id = "4711.0";
  EXPECT_EQ(default_directory_name(words("python train.py"), slurm, time),
            "idlescope-train-4711.0");
}

TEST(Pattern, ReplacesWhatNsysReplaces) {
  JobIdentity identity;
  identity.rank = 3;
  const Environment environment = [](const char* name) -> const char* {
    return std::string(name) == "RUN" ? "r1" : nullptr;
  };
  EXPECT_EQ(*expand_pattern("a-%r-%q{RUN}-%p-%%", identity, environment),
            "a-3-r1-" + std::to_string(getpid()) + "-%");
  EXPECT_FALSE(expand_pattern("a-%q{NOT_SET}", identity, environment));
  EXPECT_FALSE(expand_pattern("a-%q{RUN", identity, environment));
  EXPECT_FALSE(expand_pattern("a-%x", identity, environment));
  EXPECT_FALSE(expand_pattern("a-%", identity, environment));
}

class MakeDirectory : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/idlescope_test_XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name) { std::ofstream(root_ / "out" / name) << "x"; }
  void write_run(const std::string& job_id, bool ended) {
    run::Run run;
    run.set_job_id(job_id);
    if (ended) run.mutable_end()->set_exit_code(0);
    ASSERT_TRUE(write_run_file((root_ / "out" / "run.json").string(), run));
  }
  tl::expected<OutputDirectory, OutputFailure> make(bool force, JobIdentity identity = {}) {
    return make_output_directory((root_ / "out/").string(), force, identity);
  }
  fs::path root_;
};

TEST_F(MakeDirectory, MakesParentsToo) {
  const auto made = make_output_directory((root_ / "a/b/c").string(), false, {});
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->created);
  EXPECT_TRUE(fs::is_directory(root_ / "a/b/c"));
}

TEST_F(MakeDirectory, TakesAnEmptyOne) {
  fs::create_directory(root_ / "out");
  const auto made = make(false);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->created);
  EXPECT_EQ(made->path, (root_ / "out").string());
}

TEST_F(MakeDirectory, RefusesToOverwrite) {
  fs::create_directory(root_ / "out");
  write("h.1.2.0.istrace");
  const auto made = make(false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().error, OutputError::kExists);
  EXPECT_TRUE(fs::exists(root_ / "out/h.1.2.0.istrace"));
}

TEST_F(MakeDirectory, ForceRemovesTheRecordingAndNothingElse) {
  fs::create_directory(root_ / "out");
  for (const char* name : {"h.1.2.0.istrace", "run-7.json", "report.html", "model.pt", "runs.json"})
    write(name);
  write_run("", true);
  ASSERT_TRUE(make(true));
  EXPECT_FALSE(fs::exists(root_ / "out/h.1.2.0.istrace"));
  EXPECT_FALSE(fs::exists(root_ / "out/run.json"));
  EXPECT_FALSE(fs::exists(root_ / "out/run-7.json"));
  EXPECT_TRUE(fs::exists(root_ / "out/model.pt"));
  EXPECT_TRUE(fs::exists(root_ / "out/runs.json"));
}

TEST_F(MakeDirectory, RanksOfOneJobShareIt) {
  fs::create_directory(root_ / "out");
  write_run("4711.0", false);
  write("h.1.2.0.istrace");
  JobIdentity rank;
  rank.rank = 1;
  rank.job_id = "4711.0";
  ASSERT_TRUE(make(true, rank));
  EXPECT_TRUE(fs::exists(root_ / "out/h.1.2.0.istrace")) << "a sibling is writing it";
  rank.job_id = "4712.0";
  EXPECT_FALSE(make(false, rank));
}

TEST_F(MakeDirectory, WithoutAJobIdAnEndedRunIsAnEarlierOne) {
  fs::create_directory(root_ / "out");
  JobIdentity rank;
  rank.rank = 1;
  write_run("", false);
  EXPECT_TRUE(make(false, rank));
  write_run("", true);
  EXPECT_FALSE(make(false, rank));
}

TEST_F(MakeDirectory, AFileInTheWayIsAnError) {
  std::ofstream(root_ / "out") << "x";
  const auto made = make_output_directory((root_ / "out").string(), true, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().error, OutputError::kFailed);
  EXPECT_FALSE(made.error().reason.empty());
}

}  // namespace
}  // namespace idlescope::tools
