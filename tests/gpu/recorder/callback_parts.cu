// What makes a launch slower inside a window, part by part. CUPTI alone, no recorder.
//
// Each row attaches CUPTI afresh with some of the parts and finalizes it afterwards. Numbers are
// medians of 11 blocks of 400 launches (and 400 event records). Build:
//   nvcc -O2 -std=c++17 -cudart shared callback_parts.cu -o callback_parts -lcupti
#include <cuda_runtime.h>
#include <cupti.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

__global__ void empty() {}

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
uint64_t CUPTIAPI stamp() { return now(); }
void CUPTIAPI request(uint8_t** b, size_t* s, size_t* m) {
  *s = 256 << 10;
  *b = static_cast<uint8_t*>(aligned_alloc(64, *s));
  *m = 0;
}
void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* b, size_t, size_t) { free(b); }
bool payload = false;
volatile uint64_t sink;
void CUPTIAPI callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* raw) {
  if (!payload) return;
  const auto* data = static_cast<const CUpti_CallbackData*>(raw);
  if (data->callbackSite == CUPTI_API_ENTER) {
    *data->correlationData = now();
  } else {
    sink = now() - *data->correlationData;
  }
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main() {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  const auto block = [&](const std::function<void()>& call) {
    cudaStreamSynchronize(stream);
    const uint64_t begin = now();
    for (int i = 0; i < 400; ++i) call();
    const double took = static_cast<double>(now() - begin) / 400;
    cudaStreamSynchronize(stream);
    return took;
  };
  const auto measure = [&](const char* name) {
    std::vector<double> launch, record;
    for (int i = 0; i < 11; ++i) {
      launch.push_back(block([&] { empty<<<1, 32, 0, stream>>>(); }));
      record.push_back(block([&] { cudaEventRecord(event, stream); }));
    }
    printf("%-44s launch %6.0f ns   event record %6.0f ns\n", name, median(launch), median(record));
    fflush(stdout);
  };
  {
    const uint64_t begin = now();
    for (int i = 0; i < 100000; ++i) sink = now();
    printf("clock_gettime(CLOCK_MONOTONIC) %.1f ns\n", static_cast<double>(now() - begin) / 1e5);
  }
  measure("warm-up");
  measure("CUPTI not attached");
  struct Row {
    const char* name;
    const char* parts;  // k kernels, m copies, o overhead, t our clock, r/d callbacks, p payload
  };
  for (const Row& row : {Row{"kernels", "k"}, Row{"kernels, our clock", "kt"},
                         Row{"kernels, copies, memsets", "km"},
                         Row{"kernels, copies, memsets, overhead", "kmo"},
                         Row{"runtime callbacks (empty)", "r"}, Row{"driver callbacks (empty)", "d"},
                         Row{"both domains (empty)", "rd"}, Row{"both domains, two clock reads", "rdp"},
                         Row{"all of it, runtime callbacks", "kmotrp"},
                         Row{"all of it, driver callbacks", "kmotdp"},
                         Row{"all of it, both domains", "kmotrdp"}}) {
    const std::string parts = row.parts;
    const auto has = [&](char c) { return parts.find(c) != std::string::npos; };
    CUpti_SubscriberHandle subscriber;
    payload = has('p');
    cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(callback), nullptr);
    if (has('t')) cuptiActivityRegisterTimestampCallback(stamp);
    cuptiActivityRegisterCallbacks(request, complete);
    if (has('r')) {
      cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
      cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020);
    }
    if (has('d')) {
      cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
      cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventRecord);
    }
    if (has('m')) {
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
    }
    if (has('o')) cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD);
    if (has('k')) cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    measure(row.name);
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(1);
    cuptiFinalize();
  }
  measure("finalized");
}
