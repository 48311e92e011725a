#include "tools/outside_reach.h"

#include <gtest/gtest.h>

#include <sstream>

namespace idlescope::tools {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

std::string better(const std::string& line) {
  const auto found = find_outside_reach(words(line), "/home/u/idlescope/bin");
  return found ? found->better : "";
}

TEST(OutsideReach, OrdinaryJobsAreWithinReach) {
  for (const char* line : {"python train.py", "torchrun --nproc-per-node 8 train.py", "bash run.sh",
                           "env A=1 python train.py", "./docker.py docker", "python ssh sudo",
                           "accelerate launch train.py", "nice -n 5 python docker"}) {
    EXPECT_EQ(better(line), "") << line;
  }
}

TEST(OutsideReach, ContainersAndOtherUsers) {
  EXPECT_EQ(better("docker run --gpus all img python train.py --lr 1"),
            "docker run -v /home/u/idlescope:/opt/idlescope --gpus all img "
            "/opt/idlescope/bin/idlescope record -- python train.py --lr 1");
  EXPECT_EQ(better("docker exec -it box python train.py"),
            "docker exec -it box idlescope record -- python train.py");
  EXPECT_EQ(better("sudo -E python3 train.py"), "sudo -E idlescope record -- python3 train.py");
  EXPECT_EQ(better("/usr/bin/srun -n 8 python train.py"),
            "/usr/bin/srun -n 8 idlescope record -- python train.py");
  EXPECT_EQ(better("kubectl exec pod -- torchrun t.py"),
            "kubectl exec pod -- idlescope record -- torchrun t.py");
}

TEST(OutsideReach, ApptainerNeedsTheInstallationInTheImage) {
  EXPECT_EQ(better("srun apptainer exec --nv img.sif python train.py"),
            "srun apptainer exec -B /home/u/idlescope:/opt/idlescope --nv img.sif "
            "/opt/idlescope/bin/idlescope record -- python train.py");
}

TEST(OutsideReach, InnermostStarterDecides) {
  const auto found = find_outside_reach(words("srun docker run img python t.py"), "/b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->program, "docker");
  EXPECT_FALSE(found->keep_preload);
  EXPECT_TRUE(find_outside_reach(words("srun python t.py"), "/b")->keep_preload);
}

TEST(OutsideReach, LooksBehindWrappers) {
  EXPECT_EQ(better("timeout 3600 docker run img python t.py"),
            "timeout 3600 docker run -v /home/u/idlescope:/opt/idlescope img "
            "/opt/idlescope/bin/idlescope record -- python t.py");
  EXPECT_EQ(better("env A=1 nice -n 5 ssh host python t.py"),
            "env A=1 nice -n 5 ssh host idlescope record -- python t.py");
}

TEST(OutsideReach, WithoutAKnownJobItGivesTheShape) {
  EXPECT_EQ(better("docker run img"), "docker … idlescope record -- python train.py");
}

TEST(ShellLine, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_line({"a", "b c", "", "it's", "$x", "a=b"}), "a 'b c' '' 'it'\\''s' '$x' a=b");
}

}  // namespace
}  // namespace idlescope::tools
