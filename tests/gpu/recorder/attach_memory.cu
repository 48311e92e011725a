// What attaching and finalizing CUPTI leaves behind in memory. CUPTI alone, no recorder.
//
// Usage: attach_memory CYCLES [THREADS]. Each cycle subscribes, takes callbacks of a launch, records
// kernels and copies for 10 ms while this thread launches, and finalizes while it stands; buffers are
// never given back, so that what grows is CUPTI's. THREADS: more threads that launch in their turn
// and stand during the finalize. Out: resident memory and heap in use after each tenth of the cycles.
//   nvcc -O2 -std=c++17 -cudart shared attach_memory.cu -o attach_memory -lcupti
#include <cuda_runtime.h>
#include <cupti.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace {

__global__ void empty() {}

constexpr size_t kBufferBytes = 256 << 10;
std::mutex mutex;
std::vector<uint8_t*> free_buffers;

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (free_buffers.empty()) {
    free_buffers.push_back(static_cast<uint8_t*>(aligned_alloc(64, kBufferBytes)));
  }
  *buffer = free_buffers.back();
  free_buffers.pop_back();
  *size = kBufferBytes;
  *max_records = 0;
}
void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
  const std::lock_guard<std::mutex> lock(mutex);
  free_buffers.push_back(buffer);
}
void CUPTIAPI callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

long rss_kb() {
  long pages = 0, total = 0;
  if (FILE* file = fopen("/proc/self/statm", "r")) {
    if (fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
    fclose(file);
  }
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  const int cycles = argc > 1 ? atoi(argv[1]) : 300;
  std::atomic<bool> stop{false}, stand{false};
  std::atomic<int> standing{0};
  std::vector<std::thread> others;
  const int threads = argc > 2 ? atoi(argv[2]) : 0;
  for (int i = 0; i < threads; ++i) {
    others.emplace_back([&] {
      cudaStream_t own;
      cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
      while (!stop) {
        for (int k = 0; k < 8; ++k) empty<<<1, 1, 0, own>>>();
        cudaStreamSynchronize(own);
        if (!stand) continue;
        ++standing;
        while (stand) std::this_thread::yield();
        --standing;
      }
    });
  }
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  int failures = 0;
  const auto check = [&](CUptiResult result) { failures += result != CUPTI_SUCCESS; };
  for (int cycle = 0; cycle < cycles; ++cycle) {
    CUpti_SubscriberHandle subscriber;
    check(cuptiSubscribe(&subscriber, callback, nullptr));
    check(cuptiActivityRegisterCallbacks(request, complete));
    check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                              CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
    check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    while (std::chrono::steady_clock::now() < until) {
      for (int k = 0; k < 8; ++k) empty<<<1, 1, 0, stream>>>();
      cudaStreamSynchronize(stream);
    }
    check(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY));
    check(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    stand = true;
    while (standing < threads) std::this_thread::yield();
    check(cuptiActivityFlushAll(1));
    check(cuptiFinalize());
    stand = false;
    while (standing > 0) std::this_thread::yield();
    if (cycle % (cycles / 10 > 0 ? cycles / 10 : 1) == 0) {
      printf("cycle %d: rss %ld KB, heap %zu KB\n", cycle, rss_kb(), mallinfo2().uordblks / 1024);
    }
  }
  stop = true;
  for (std::thread& other : others) other.join();
  printf("attach_memory: %d cycles, %d threads, %d failed calls, rss %ld KB, heap %zu KB\n", cycles,
         threads + 1, failures, rss_kb(), mallinfo2().uordblks / 1024);
  return failures == 0 ? 0 : 1;
}
