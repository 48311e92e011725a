// What happens to CUDA graphs when CUPTI is attached to and detached from the running job.
//
// Usage: graph_detach CAPTURE LEVEL REPLAY PAUSE HOW WINDOWS
//   CAPTURE  before | during     the graph is captured before the first attach, or inside it
//   LEVEL    node | graph        one record per node, or CUPTI_ACTIVITY_KIND_GRAPH_TRACE
//   REPLAY   yes | no            the graph is launched inside the window, or only eager kernels
//   PAUSE    run | sync          launches go on over the detach, or stop with the device idle
//   HOW      finalize | exit | disable   from the control thread; inside an API-exit callback
//                                of the launching thread; not at all (kinds off only)
// Out: one line of key=value pairs: host time per launch before, inside and after a window,
// records, results of CUPTI calls, the first CUDA error. Build:
//   nvcc -O2 -std=c++17 -cudart shared graph_detach.cu -o graph_detach -lcupti
#include <cuda_runtime.h>
#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

__global__ void kernel(float* p) {
  if (p[threadIdx.x] > 1e30f) p[0] = 1;
}

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

std::atomic<uint64_t> records{0}, incomplete{0}, graph_records{0};
std::atomic<int> phase{0};          // launch times are booked by phase
std::atomic<bool> pause_wanted{false}, paused{false}, stop{false}, finalize_now{false},
    finalized{false};
double time_us[8] = {};
uint64_t launches[8] = {};
std::string failures;
CUpti_SubscriberHandle subscriber;

void check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "?";
  cuptiGetResultString(result, &text);
  if (failures.find(what) == std::string::npos) failures += std::string(what) + ":" + text + ",";
}

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = 256 << 10;
  *buffer = static_cast<uint8_t*>(aligned_alloc(64, *size));
  *max_records = 0;
}
void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      auto* k = reinterpret_cast<CUpti_ActivityKernel10*>(record);
      ++records;
      if (k->start == 0 || k->end == 0) ++incomplete;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) {
      ++graph_records;
    }
  }
  free(buffer);
}
void CUPTIAPI callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* raw) {
  const auto* data = static_cast<const CUpti_CallbackData*>(raw);
  if (data->callbackSite == CUPTI_API_EXIT && finalize_now.exchange(false)) {
    check(cuptiFinalize(), "finalize");
    finalized = true;
  }
}

void attach(bool graph_level) {
  check(cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(callback), nullptr),
        "subscribe");
  check(cuptiActivityRegisterCallbacks(request, complete), "register");
  for (auto id : {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                  CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000}) {
    check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id), "callback");
  }
  if (graph_level) check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), "enable-graph");
  check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable-kernel");
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const std::string capture = argv[1], level = argv[2], replay = argv[3], pause = argv[4],
                    how = argv[5];
  const int windows = atoi(argv[6]);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  float* memory;
  cudaMalloc(&memory, 4096);
  cudaMemset(memory, 0, 4096);
  cudaGraphExec_t exec = nullptr;
  std::atomic<bool> has_graph{false}, want_capture{capture == "before"}, use_graph{true};
  cudaError_t first_error = cudaSuccess;

  std::thread launcher([&] {
    int n = 0;
    while (!stop) {
      if (pause_wanted) {
        cudaStreamSynchronize(stream);
        paused = true;
        while (pause_wanted && !stop) sleep_ms(1);
        paused = false;
      }
      if (want_capture) {
        cudaGraph_t graph;
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        for (int i = 0; i < 50; ++i) kernel<<<1, 32, 0, stream>>>(memory);
        cudaStreamEndCapture(stream, &graph);
        cudaGraphInstantiate(&exec, graph, 0);
        want_capture = false;
        has_graph = true;
      }
      const int at = phase;
      const double begin = now_us();
      if (has_graph && use_graph) {
        cudaGraphLaunch(exec, stream);
      } else {
        kernel<<<1, 32, 0, stream>>>(memory);
      }
      time_us[at] += now_us() - begin;
      ++launches[at];
      if (++n % 8 == 0) {
        const cudaError_t error = cudaStreamSynchronize(stream);
        if (error != cudaSuccess && first_error == cudaSuccess) {
          first_error = error;
          fprintf(stderr, "phase %d launch %lu: %s\n", at, launches[at], cudaGetErrorString(error));
        }
        if (error != cudaSuccess) sleep_ms(1);
      }
    }
    cudaStreamSynchronize(stream);
  });
  sleep_ms(300);
  double attach_ms = 0, detach_ms = 0;
  bool attached = false;
  for (int window = 0; window < windows; ++window) {
    phase = 0;
    sleep_ms(150);
    if (replay == "no") use_graph = false;
    double begin = now_us();
    if (!attached) {
      attach(level == "graph");
    } else {
      if (level == "graph") check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), "enable-graph");
      check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable-kernel");
    }
    attached = true;
    attach_ms = std::max(attach_ms, (now_us() - begin) / 1e3);
    phase = 1 + (window == 0 ? 0 : 1);
    if (capture == "during" && window == 0) {
      sleep_ms(20);
      want_capture = true;
    }
    sleep_ms(150);
    if (pause == "sync") {
      pause_wanted = true;
      while (!paused) sleep_ms(1);
      cudaDeviceSynchronize();
    }
    phase = 3;
    begin = now_us();
    check(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "disable");
    if (level == "graph") check(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), "disable-graph");
    check(cuptiActivityFlushAll(0), "flush");
    if (how == "finalize") {
      sleep_ms(20);
      check(cuptiActivityFlushAll(1), "flush-forced");
      check(cuptiFinalize(), "finalize");
      attached = false;
    } else if (how == "exit") {
      sleep_ms(20);
      check(cuptiActivityFlushAll(1), "flush-forced");
      finalized = false;
      finalize_now = true;
      pause_wanted = false;
      for (int i = 0; i < 500 && !finalized; ++i) sleep_ms(1);
      if (!finalized) failures += "exit-callback-timeout,";
      attached = !finalized;
    }
    detach_ms = std::max(detach_ms, (now_us() - begin) / 1e3);
    phase = 4;
    pause_wanted = false;
    use_graph = true;
    sleep_ms(200);
  }
  stop = true;
  launcher.join();
  if (first_error == cudaSuccess) first_error = cudaDeviceSynchronize();
  const auto mean = [](int p) { return launches[p] ? time_us[p] / launches[p] : 0.0; };
  printf("%-6s %-5s replay=%-3s %-4s %-8s launch us: plain %.1f first-window %.1f (n=%lu) later %.1f (n=%lu) "
         "after %.1f | kernels %lu graphs %lu incomplete %lu attach %.1f detach %.1f ms | cupti %s | cuda %s\n",
         capture.c_str(), level.c_str(), replay.c_str(), pause.c_str(), how.c_str(), mean(0), mean(1), launches[1],
         mean(2), launches[2], mean(4), records.load(), graph_records.load(), incomplete.load(), attach_ms, detach_ms,
         failures.empty() ? "ok" : failures.c_str(), cudaGetErrorName(first_error));
  return first_error == cudaSuccess ? 0 : 1;
}
