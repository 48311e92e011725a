#include "tools/completion_script.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace idlescope::tools {
namespace {

std::vector<DescribedCommand> commands() {
  DescribedCommand report{"report", "Say what it's about: [why] \"idle\"", "", {}, {}, false};
  report.options.push_back(
      {{"--format", "-F"}, "text, json or html", {"text", "json", "html"}, true});
  report.options.push_back({{"--force"}, "Overwrite", {}, false});
  DescribedCommand record{"record", "Run a job", "", {{{"--output", "-o"}, "Directory", {}, true}},
                          {},       true};
  return {report, record};
}

// What `line` completes to in bash, one candidate a line.
std::string completed(const std::string& words) {
  char path[] = "/tmp/idlescope-completion-XXXXXX";
  const int file = mkstemp(path);
  EXPECT_GE(file, 0);
  close(file);
  std::ofstream(path) << completion_script(Shell::kBash, commands()) << "\nCOMP_WORDS=(" << words
                      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_idlescope\n"
                      << "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
  FILE* pipe = popen((std::string("bash --norc ") + path).c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const size_t read = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, read);
  EXPECT_EQ(pclose(pipe), 0);
  unlink(path);
  return out;
}

TEST(Completion, BashCompletesCommandsOptionsAndValues) {
  EXPECT_EQ(completed("idlescope rep"), "report\n");
  EXPECT_EQ(completed("idlescope report --fo"), "--format\n--force\n");
  EXPECT_EQ(completed("idlescope report --format j"), "json\n");
  EXPECT_EQ(completed("idlescope report -F h"), "html\n");
  EXPECT_EQ(completed("idlescope record --"), "--output\n");
}

TEST(Completion, BehindTheDashesIsACommand) {
  EXPECT_NE(completed("idlescope record -- bas").find("bash\n"), std::string::npos);
  EXPECT_EQ(completed("idlescope record -- bash --fo"), "\n") << "its options are not ours";
}

bool parses(const char* shell, const char* option, Shell kind) {
  char path[] = "/tmp/idlescope-completion-XXXXXX";
  const int file = mkstemp(path);
  EXPECT_GE(file, 0);
  close(file);
  std::ofstream(path) << completion_script(kind, commands());
  const int status = std::system((std::string(shell) + " " + option + " " + path).c_str());
  unlink(path);
  return status == 0;
}

TEST(Completion, OtherShellsParseIt) {
  EXPECT_TRUE(parses("bash", "-n", Shell::kBash));
  const bool zsh = std::system("command -v zsh >/dev/null") == 0;
  const bool fish = std::system("command -v fish >/dev/null") == 0;
  if (zsh) {
    EXPECT_TRUE(parses("zsh", "-n", Shell::kZsh));
  }
  if (fish) {
    EXPECT_TRUE(parses("fish", "-n", Shell::kFish));
  }
  if (!zsh && !fish) GTEST_SKIP() << "neither zsh nor fish is installed";
}

TEST(Completion, DescriptionsCannotEndTheirQuotes) {
  const std::string zsh = completion_script(Shell::kZsh, commands());
  EXPECT_NE(zsh.find(R"('report:Say what it'\''s about\: \[why\] "idle"')"), std::string::npos)
      << zsh;
  const std::string fish = completion_script(Shell::kFish, commands());
  EXPECT_NE(fish.find("-l format -s F -r -f -a 'text json html'"), std::string::npos) << fish;
}

}  // namespace
}  // namespace idlescope::tools
