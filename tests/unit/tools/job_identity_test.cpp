#include "tools/job_identity.h"

#include <gtest/gtest.h>

#include <map>

namespace idlescope::tools {
namespace {

JobIdentity identify(const std::map<std::string, std::string>& variables) {
  return identify_job([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(JobIdentity, NothingSetIsOneProcess) {
  const JobIdentity identity = identify({});
  EXPECT_FALSE(identity.rank);
  EXPECT_TRUE(identity.job_id.empty());
}

TEST(JobIdentity, TorchrunWinsOverTheSchedulerAroundIt) {
  const JobIdentity identity = identify({{"RANK", "3"},
                                         {"WORLD_SIZE", "8"},
                                         {"SLURM_PROCID", "0"},
                                         {"SLURM_NTASKS", "2"},
                                         {"SLURM_JOB_ID", "4711"},
                                         {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(identity.rank, 3);
  EXPECT_EQ(identity.world_size, 8);
  EXPECT_EQ(identity.job_id, "4711.0");
}

TEST(JobIdentity, OpenMpiAndSlurm) {
  EXPECT_EQ(identify({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).rank, 1);
  EXPECT_EQ(identify({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}}).rank, 5);
  EXPECT_EQ(identify({{"SLURM_JOB_ID", "9"}}).job_id, "9");
}

TEST(JobIdentity, GarbageIsNoRank) {
  EXPECT_FALSE(identify({{"RANK", "x"}, {"WORLD_SIZE", "8"}}).rank);
  EXPECT_FALSE(identify({{"RANK", "-1"}, {"WORLD_SIZE", "8"}}).rank);
  EXPECT_FALSE(identify({{"RANK", "1"}}).rank);  // a lone RANK is anybody's variable
}

}  // namespace
}  // namespace idlescope::tools
