// What the LibTorch jobs share: options, calibration, step timing, the result lines.
//
// The C++ counterpart of scenarios/harness.py: same options, same RESULT and TRUTH lines,
// read by run_suite. Plain LibTorch and the CUDA runtime, no annotation of any kind; the
// jobs are recorded by LD_PRELOAD alone.
#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace scenario {

struct Options {
  std::string fix = "none";
  int steps = 60;
  int seed = 1;
  int warm_up = 20;
  bool cuda = true;
  bool tiny = false;
  bool twin = false;  // so heavy on the device that the device is the limit
  std::string gate;
  std::string calibration;  // file with what an earlier run measured
  bool calibrate_only = false;
};

inline Options parse(int argc, char** argv, int steps) {
  Options options;
  options.steps = steps;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) {
        std::fprintf(stderr, "%s needs a value\n", name.c_str());
        std::exit(2);
      }
      return argv[++i];
    };
    if (name == "--fix") {
      options.fix = value();
    } else if (name == "--steps") {
      options.steps = std::stoi(value());
    } else if (name == "--seed") {
      options.seed = std::stoi(value());
    } else if (name == "--gate") {
      options.gate = value();
    } else if (name == "--calibration") {
      options.calibration = value();
    } else if (name == "--calibrate-only") {
      options.calibrate_only = true;
    } else if (name == "--device") {
      options.cuda = value() == "cuda";
    } else if (name == "--twin") {
      options.twin = true;
    } else if (name == "--tiny") {
      options.tiny = true;
    } else {
      std::fprintf(stderr, "unknown option %s\n", name.c_str());
      std::exit(2);
    }
  }
  if (options.twin) {
    options.warm_up = 10;
    options.steps = std::min(options.steps, 30);
  }
  if (options.tiny) options.warm_up = 3;
  torch::manual_seed(options.seed);
  if (!options.gate.empty()) {
    while (!std::ifstream(options.gate)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return options;
}

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Job {
 public:
  explicit Job(const Options& options) : options_(options) {}

  torch::Device device() const { return options_.cuda ? torch::kCUDA : torch::kCPU; }
  void synchronize() const {
    if (options_.cuda) cudaDeviceSynchronize();
  }

  // Host time to issue `step` on an idle device.
  double host_ms(const std::function<void()>& step, int repeat = 10) const {
    std::vector<double> times;
    for (int i = 0; i < repeat; ++i) {
      synchronize();
      const double begin = now_ms();
      step();
      times.push_back(now_ms() - begin);
    }
    synchronize();
    return median(times);
  }

  // Device time of `step` with its launches queued beforehand: a large product holds the
  // device meanwhile.
  double device_ms(const std::function<void()>& step) {
    if (!options_.cuda) return host_ms(step);
    const double hold_ms = 2 * host_ms(step, 3) + 2;
    if (!holder_.defined()) holder_ = torch::randn({8192, 8192}, torch::kCUDA);
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      synchronize();
      // About 20 ms each in fp32 on a data-centre GPU; longer elsewhere does no harm.
      for (double held = 0; held < hold_ms; held += 15) torch::mm(holder_, holder_);
      at::cuda::CUDAEvent first(cudaEventDefault), second(cudaEventDefault);
      first.record();
      step();
      second.record();
      second.synchronize();
      times.push_back(first.elapsed_time(second));
    }
    return median(times);
  }

  // `measure()`, or what an earlier run measured: run_suite calibrates in a run of its own,
  // because a recording should not contain it. `name` is one word.
  double calibrated(const std::string& name, const std::function<double()>& measure) const {
    if (options_.calibration.empty()) return measure();
    const std::string key = name + "." + options_.fix + (options_.twin ? ".twin" : "");
    std::ifstream known(options_.calibration);
    std::string word;
    double value = 0;
    while (known >> word >> value) {
      if (word == key) return value;
    }
    value = measure();
    char line[200];
    std::snprintf(line, sizeof line, "%s %.9g\n", key.c_str(), value);
    std::ofstream(options_.calibration, std::ios::app) << line;
    return value;
  }
  // Between calibration and training.
  void end_of_calibration() const {
    if (!options_.calibrate_only) return;
    synchronize();
    std::exit(0);
  }

  // End of a step; false when enough were counted.
  bool go_on() {
    if (options_.cuda) {
      events_.emplace_back(cudaEventDefault);
      events_.back().record();
    } else {
      stamps_.push_back(now_ms());
    }
    const int taken = static_cast<int>(std::max(events_.size(), stamps_.size()));
    return taken - 1 - options_.warm_up < options_.steps;
  }

  // Mean over the counted steps; call once, after the loop.
  double finish_steps() {
    synchronize();
    for (size_t i = options_.warm_up; i + 1 < std::max(events_.size(), stamps_.size()); ++i) {
      step_ms_.push_back(options_.cuda ? events_[i].elapsed_time(events_[i + 1])
                                       : stamps_[i + 1] - stamps_[i]);
    }
    double sum = 0;
    for (const double step : step_ms_) sum += step;
    return sum / static_cast<double>(step_ms_.size());
  }

  double p50() const { return median(step_ms_); }

  // `expect` is the inside of a JSON object with the keys of harness.expected().
  void print(const char* name, const char* title, double tc_ms, double tl_ms, int64_t samples,
             const std::string& expect) const {
    std::vector<double> sorted = step_ms_;
    std::sort(sorted.begin(), sorted.end());
    double mean = 0;
    for (const double step : sorted) mean += step / static_cast<double>(sorted.size());
    const double p95 = sorted[std::min(sorted.size() - 1, sorted.size() * 95 / 100)];
    std::printf(
        "RESULT %s %s steps_per_s=%.3f tc_ms=%.3f step_ms_p50=%.3f step_ms_p95=%.3f tl_ms=%.3f "
        "step_ms_mean=%.3f\n",
        name, options_.fix.c_str(), 1e3 / mean, tc_ms, p50(), p95, tl_ms, mean);
    std::printf(
        "TRUTH {\"scenario\": \"%s\", \"name\": \"%s\", \"fix\": \"%s\", \"twin\": %s, "
        "\"torch\": \"%s\", \"device\": \"%s\", \"expect\": {%s}, \"measured\": {\"tc_ms\": %.6f, "
        "\"tl_ms\": %.6f, \"step_ms_p50\": %.6f, \"step_ms_p95\": %.6f, \"step_ms_mean\": %.6f, "
        "\"steps_per_s\": %.6f, \"counted\": %zu, \"samples_per_step\": %lld}}\n",
        name, title, options_.fix.c_str(), options_.twin ? "true" : "false", TORCH_VERSION,
        options_.cuda ? "cuda" : "cpu", expect.c_str(), tc_ms, tl_ms, p50(), p95, mean, 1e3 / mean,
        sorted.size(), static_cast<long long>(samples));
    std::fflush(stdout);
  }

 private:
  Options options_;
  torch::Tensor holder_;
  std::vector<at::cuda::CUDAEvent> events_;
  std::vector<double> stamps_;
  std::vector<double> step_ms_;
};

inline std::string quoted(const std::vector<std::string>& words) {
  std::string out = "[";
  for (const std::string& word : words) out += (out.size() > 1 ? ", \"" : "\"") + word + "\"";
  return out + "]";
}

// The keys run_suite needs of every expectation.
inline std::string expected(const std::vector<std::string>& verdicts,
                            const std::vector<std::string>& leaves, double share,
                            const std::vector<std::string>& accept,
                            const std::vector<std::string>& forbid, const char* gone) {
  return "\"verdicts\": " + quoted(verdicts) + ", \"leaves\": " + quoted(leaves) +
         ", \"limiters\": [], \"share\": " + (share < 0 ? "null" : std::to_string(share)) +
         ", \"tolerance\": 0.1, \"accept\": " + quoted(accept) + ", \"forbid\": " + quoted(forbid) +
         ", \"forbid_first\": [], \"gone\": " + (gone ? std::string("\"") + gone + "\"" : "null");
}

}  // namespace scenario
