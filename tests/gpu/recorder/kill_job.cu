// A CUDA job to be killed: says, in a file that survives, what it had launched and when.
//
// Usage: kill_job PROGRESS_FILE. In: LD_PRELOAD of the recorder, --window full. Out: two
// threads launch kernels; after each return from a launch {count, CLOCK_MONOTONIC ns} is
// stored in the mapped file. kill_check.py compares that with the trace.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

__global__ void work(float* p) {
  for (int i = 0; i < 200; ++i) p[threadIdx.x] = p[threadIdx.x] * 0.5f + 1;
}

struct Progress {
  std::atomic<uint64_t> launches[2];
  std::atomic<int64_t> last_ns[2];
};

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ftruncate(file, 4096) != 0) return 2;
  auto* progress = static_cast<Progress*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  const auto run = [&](int index) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    float* memory;
    cudaMalloc(&memory, 4096);
    for (uint64_t n = 1;; ++n) {
      work<<<1, 128, 0, stream>>>(memory);
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      progress->last_ns[index].store(now.tv_sec * 1000000000LL + now.tv_nsec);
      progress->launches[index].store(n);
      if (n % 16 == 0) cudaStreamSynchronize(stream);
      usleep(100);
    }
  };
  std::thread other(run, 1);
  run(0);
}
