// Nanoseconds per CUDA call: without CUPTI, inside a window of the recorder, and after it.
//
// Run under LD_PRELOAD=libidlescope.so IDLESCOPE_WINDOW=off; windows are opened through the C
// API. Each number is the median of nine blocks of calls, in the order plain, window, plain,
// window …, so that drift hits both. Build: nvcc -O2 -std=c++17 -cudart shared call_cost.cu
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

namespace {

__global__ void empty() {}

double now_ns() {
  using namespace std::chrono;
  return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Case {
  const char* name;
  int count;
  std::function<void()> call;
  std::function<void()> settle;
  std::vector<double> plain, window, after;
};

}  // namespace

int main() {
  using Function = int (*)();
  const auto start = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "idlescope_start"));
  const auto end = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "idlescope_stop"));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  void* device;
  void* pinned;
  cudaMalloc(&device, 1 << 20);
  cudaMallocHost(&pinned, 1 << 20);
  int id = 0;
  cudaStreamCaptureStatus capture;
  const auto sync = [&] { cudaStreamSynchronize(stream); };
  std::vector<Case> cases = {
      {"cudaLaunchKernel", 400, [&] { empty<<<1, 32, 0, stream>>>(); }, sync},
      {"cudaMemcpyAsync H2D 256 B pinned", 200, [&] { cudaMemcpyAsync(device, pinned, 256, cudaMemcpyHostToDevice, stream); }, sync},
      {"cudaMemsetAsync", 200, [&] { cudaMemsetAsync(device, 0, 256, stream); }, sync},
      {"cudaStreamSynchronize (idle)", 1000, [&] { cudaStreamSynchronize(stream); }, sync},
      {"cudaEventRecord", 400, [&] { cudaEventRecord(event, stream); }, sync},
      {"cudaStreamWaitEvent", 400, [&] { cudaStreamWaitEvent(stream, event, 0); }, sync},
      {"cudaMalloc + cudaFree 1 MiB", 20, [&] { void* p; cudaMalloc(&p, 1 << 20); cudaFree(p); }, sync},
      {"cudaGetDevice (not recorded)", 2000, [&] { cudaGetDevice(&id); }, sync},
      {"cudaStreamIsCapturing (not recorded)", 2000, [&] { cudaStreamIsCapturing(stream, &capture); }, sync},
      {"cudaEventQuery (not recorded)", 1000, [&] { cudaEventQuery(event); }, sync},
  };
  const auto measure = [&](std::vector<double> Case::*where) {
    for (Case& c : cases) {
      c.settle();
      for (int i = 0; i < c.count / 4 + 1; ++i) c.call();
      c.settle();
      const double begin = now_ns();
      for (int i = 0; i < c.count; ++i) c.call();
      (c.*where).push_back((now_ns() - begin) / c.count);
      c.settle();
    }
  };
  measure(&Case::plain);
  for (Case& c : cases) c.plain.clear();
  for (int round = 0; round < 9; ++round) {
    measure(round == 0 ? &Case::plain : &Case::after);
    if (round == 0) for (int i = 0; i < 8; ++i) measure(&Case::plain);
    if (start == nullptr) continue;
    start();
    usleep(120000);
    measure(&Case::window);
    end();
    usleep(120000);
  }
  printf("%-38s %9s %9s %9s %9s\n", "call, ns", "plain", "window", "added", "after");
  for (const Case& c : cases) {
    printf("%-38s %9.0f %9.0f %9.0f %9.0f\n", c.name, median(c.plain), median(c.window),
           median(c.window) - median(c.plain), median(c.after));
  }
  return 0;
}
