#include "tools/trial_recording.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/read/read.h"
#include "analysis/read/recording.h"
#include "tools/job_environment.h"
#include "tools/job_process.h"

extern char** environ;

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJob = R"(import sys
print("python", sys.version.split()[0], flush=True)
try:
    import torch
except ImportError:
    sys.exit(0)
from torch.utils.data import DataLoader, Dataset
print("torch", torch.__version__, flush=True)
print("cuda", torch.version.cuda or "", flush=True)
class Items(Dataset):
    def __len__(self): return 16
    def __getitem__(self, i): return torch.zeros(4)
def main():
    gpu = torch.cuda.is_available()
    print("available", int(gpu), flush=True)
    for batch in DataLoader(Items(), batch_size=2, num_workers=1):
        if gpu: (batch.cuda() + 1).sum().item()
if __name__ == "__main__":
    main()
)";

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void parse_output(const std::string& text, TrialRecording* out) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == line.npos) continue;
    const std::string key = line.substr(0, space);
    const std::string value = line.substr(space + 1);
    if (key == "python") out->python = value;
    if (key == "torch") out->torch = value;
    if (key == "cuda") out->cuda = value;
    if (key == "available") out->cuda_available = value == "1";
  }
  out->python_runs = !out->python.empty();
}

void count_events(const read::Recording& recording, TrialRecording* out) {
  for (const read::Process& process : recording.processes) {
    for (const read::HostEvent& event : process.host_events) {
      if (event.kind == trace::EVENT_LOADER_NEXT) ++out->batches;
      if (event.kind == trace::EVENT_WORKER_FETCH) ++out->fetches;
    }
    for (const read::Op& op : process.ops) {
      if (process.op_descriptors[op.descriptor].kind == trace::OP_KERNEL) ++out->kernels;
    }
    for (const trace::Status& status : process.statuses) {
      if (status.state() != trace::Status::STATE_RECORDING) {
        out->trouble =
            status.message_id() + (status.detail().empty() ? "" : ": " + status.detail());
      }
    }
  }
}

}  // namespace

TrialRecording make_trial_recording(const std::string& library, const std::string& python) {
  TrialRecording result;
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "idlescope-doctor-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) return result;
  const fs::path job = fs::path(folder) / "trial.py";
  const fs::path output = fs::path(folder) / "output.txt";
  const fs::path recording_path = fs::path(folder) / "recording";
  std::ofstream(job) << kJob;
  const Settings settings = {{"IDLESCOPE_OUTPUT", recording_path.string()},
                             {"IDLESCOPE_WINDOW", "full"}};
  // The job's own words are ours to read here; a shell redirects them.
  auto process = JobProcess::start({"/bin/sh", "-c", "exec \"$0\" \"$1\" >\"$2\" 2>/dev/null",
                                    python, job.string(), output.string()},
                                   job_environment(environ, settings, library));
  if (process) process->wait(60, [] {});
  parse_output(read_file(output), &result);
  if (fs::exists(recording_path, error)) {
    const auto recording = read::read_paths({recording_path.string()});
    if (recording) count_events(*recording, &result);
  }
  fs::remove_all(folder, error);
  return result;
}

}  // namespace idlescope::tools
