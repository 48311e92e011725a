// Records a tiny PyTorch job and reads it back: the one check that covers everything.
//
// In: the recorder library, a Python. Out: what arrived in the file. Takes a second or two
// (importing PyTorch); the job reads eight batches with one loader worker.
#pragma once

#include <string>

namespace idlescope::tools {

struct TrialRecording {
  bool python_runs = false;
  std::string python;  // "3.12.3"
  std::string torch;   // "2.11.0+cu130"; empty: PyTorch is not there
  std::string cuda;    // of PyTorch's build, "13.0"; empty: CPU only
  bool cuda_available = false;
  uint64_t batches = 0;  // next() calls in the recording; 8 expected
  uint64_t fetches = 0;  // inside the worker process
  uint64_t kernels = 0;  // on the GPU
  std::string trouble;   // what the recorder itself said; empty: nothing
};

inline constexpr uint64_t kTrialBatches = 8;

TrialRecording make_trial_recording(const std::string& library, const std::string& python);

}  // namespace idlescope::tools
