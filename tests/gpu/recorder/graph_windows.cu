// A graph job under the recorder: windows are opened and closed while graphs are replayed.
//
// Usage: graph_windows WINDOWS MARKS(0|1) KIND(graph|eager) [THREADS]. In: LD_PRELOAD of the recorder,
// IDLESCOPE_WINDOW=off. MARKS=1 calls idlescope_step() each step, so that a detach can hold this
// thread; without marks the recorder has to stay attached. Out: one line; a CUDA error of the
// job is a failure. KIND eager: no graphs, to watch memory over many cycles. THREADS: so many more
// threads launch all the time on streams of their own; the recorder must then stay attached.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

__global__ void kernel(float* p) {
  if (p[threadIdx.x] > 1e30f) p[0] = 1;
}

struct Status {
  size_t size;
  int recording, window_open;
  unsigned windows;
  unsigned long steps, file_bytes;
  char path[1024];
};

static long rss_kb() {
  long pages = 0, total = 0;
  if (FILE* f = fopen("/proc/self/statm", "r")) {
    if (fscanf(f, "%ld %ld", &total, &pages) != 2) pages = 0;
    fclose(f);
  }
  return pages * 4;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int windows = atoi(argv[1]);
  const bool marks = atoi(argv[2]) != 0, graphs = !strcmp(argv[3], "graph");
  const auto start = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "idlescope_start"));
  const auto end = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "idlescope_stop"));
  const auto step = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "idlescope_step"));
  const auto status = reinterpret_cast<int (*)(Status*)>(dlsym(RTLD_DEFAULT, "idlescope_get_status"));
  if (!start || !end || !step || !status) return 3;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  float* memory;
  cudaMalloc(&memory, 4096);
  cudaMemset(memory, 0, 4096);
  cudaGraphExec_t exec = nullptr;
  if (graphs) {
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < 50; ++i) kernel<<<1, 32, 0, stream>>>(memory);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = argc > 4 ? atoi(argv[4]) : 0; i > 0; --i) {
    others.emplace_back([&stop] {
      cudaStream_t own;
      float* own_memory;
      cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
      cudaMalloc(&own_memory, 4096);
      while (!stop) {
        for (int k = 0; k < 8; ++k) kernel<<<1, 32, 0, own>>>(own_memory);
        cudaStreamSynchronize(own);
      }
    });
  }
  std::atomic<unsigned long> opened{0};
  long rss[4] = {};
  std::thread control([&] {
    Status s = {};
    s.size = sizeof s;
    const auto wait = [&](int wanted) {
      for (int i = 0; i < 5000; ++i) {
        status(&s);
        if (s.window_open == wanted) return true;
        usleep(1000);
      }
      return false;
    };
    usleep(300000);
    for (int i = 0; i < windows; ++i) {
      if (i == windows / 4) rss[0] = rss_kb();
      start();
      if (!wait(1)) break;
      ++opened;
      usleep(15000);
      end();
      if (!wait(0)) break;
      usleep(3000);
    }
    rss[1] = rss_kb();
    usleep(200000);
    stop = true;
  });
  using namespace std::chrono;
  unsigned long n = 0;
  cudaError_t error = cudaSuccess;
  const auto begin = steady_clock::now();
  while (!stop) {
    if (graphs) cudaGraphLaunch(exec, stream);
    for (int i = 0; i < 5; ++i) kernel<<<1, 32, 0, stream>>>(memory);
    if (++n % 8 == 0) {
      error = cudaStreamSynchronize(stream);
      if (error != cudaSuccess) break;
    }
    if (marks) step();
  }
  stop = true;
  control.join();
  for (std::thread& other : others) other.join();
  printf("graph_windows %s marks=%d: %lu of %d windows, %lu steps in %.1f s, rss %ld -> %ld KB, cuda %s\n", argv[3],
         marks, opened.load(), windows, n, duration<double>(steady_clock::now() - begin).count(), rss[0], rss[1],
         cudaGetErrorName(error));
  return error == cudaSuccess && opened == static_cast<unsigned long>(windows) ? 0 : 1;
}
