// Nanoseconds of our part of a CUDA call: enter and exit callback with the real payload, as
// CUPTI would call them, and of the drain thread per record. CUPTI's own cost is not in here
// (docs/overhead.md).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "profiler/cuda/call_log.h"
#include "profiler/cuda/call_table.h"
#include "profiler/cuda/record_writer.h"
#include "profiler/cuda/tracer_callbacks.h"

namespace idlescope::cuda {
namespace {

bool keep_packet(const uint8_t*, size_t) { return true; }
uint32_t some_name(const char*, size_t) { return 1; }

template <typename Params>
struct Call {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId id;
  Params params = {};
};

// Drains outside the timed part, as the drain thread does.
template <typename Params>
void run(benchmark::State& state, const Call<Params>& call) {
  CallLog& log = call_log();
  log.init();
  log.keep_free(16);
  open_call_window(1);
  keep_calls_from(0);
  uint64_t word = 0;
  int result = 0;
  CUpti_CallbackData data = {};
  data.functionParams = &call.params;
  data.functionReturnValue = &result;
  data.correlationData = &word;
  uint32_t pending = 0;
  for (auto _ : state) {
    ++data.correlationId;
    data.callbackSite = CUPTI_API_ENTER;
    on_cuda_call(nullptr, call.domain, call.id, &data);
    data.callbackSite = CUPTI_API_EXIT;
    on_cuda_call(nullptr, call.domain, call.id, &data);
    if (++pending == 8000) {
      state.PauseTiming();
      log.drain([](const CallRecord&, uint32_t, uint32_t) {});
      pending = 0;
      state.ResumeTiming();
    }
  }
  close_call_window();
  log.drain([](const CallRecord&, uint32_t, uint32_t) {});
  if (log.take_lost() != 0) state.SkipWithError("records were lost");
}

#define BENCH_CALL(domain, name)                                           \
  void name(benchmark::State& state) {                                     \
    run(state, Call<::name##_params>{CUPTI_CB_DOMAIN_##domain##_API,       \
                                     CUPTI_##domain##_TRACE_CBID_##name}); \
  }                                                                        \
  BENCHMARK(name)

BENCH_CALL(RUNTIME, cudaLaunchKernel_v7000);
BENCH_CALL(RUNTIME, cudaLaunchKernelExC_v11060);
BENCH_CALL(DRIVER, cuLaunchKernel);
BENCH_CALL(RUNTIME, cudaMemcpyAsync_v3020);
BENCH_CALL(RUNTIME, cudaMemsetAsync_v3020);
BENCH_CALL(RUNTIME, cudaStreamSynchronize_v3020);
BENCH_CALL(RUNTIME, cudaEventRecord_v3020);
BENCH_CALL(RUNTIME, cudaStreamWaitEvent_v3020);
BENCH_CALL(RUNTIME, cudaMalloc_v3020);
BENCH_CALL(RUNTIME, cudaGraphLaunch_v10000);

// A launch as it comes: runtime outside, driver inside (turned away).
void launch_in_both_domains(benchmark::State& state) {
  CallLog& log = call_log();
  log.keep_free(16);
  open_call_window(1);
  keep_calls_from(0);
  cudaLaunchKernel_v7000_params outer = {};
  cuLaunchKernel_params inner = {};
  uint64_t words[2] = {};
  int result = 0;
  CUpti_CallbackData data = {};
  data.functionReturnValue = &result;
  uint32_t pending = 0;
  for (auto _ : state) {
    ++data.correlationId;
    const auto site = [&](CUpti_ApiCallbackSite where, bool runtime) {
      data.callbackSite = where;
      data.functionParams = runtime ? static_cast<const void*>(&outer) : &inner;
      data.correlationData = &words[runtime ? 0 : 1];
      if (runtime) {
        on_cuda_call(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API,
                     CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &data);
      } else {
        on_cuda_call(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                     &data);
      }
    };
    site(CUPTI_API_ENTER, true);
    site(CUPTI_API_ENTER, false);
    site(CUPTI_API_EXIT, false);
    site(CUPTI_API_EXIT, true);
    if (++pending == 8000) {
      state.PauseTiming();
      log.drain([](const CallRecord&, uint32_t, uint32_t) {});
      pending = 0;
      state.ResumeTiming();
    }
  }
  close_call_window();
  log.drain([](const CallRecord&, uint32_t, uint32_t) {});
}
BENCHMARK(launch_in_both_domains);

// Between windows CUPTI calls nothing; this is what a stray callback costs.
void no_window_open(benchmark::State& state) {
  close_call_window();
  CUpti_CallbackData data = {};
  for (auto _ : state) {
    on_cuda_call(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API,
                 CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &data);
  }
}
BENCHMARK(no_window_open);

// Drain thread: one call record into columns, encoded and compressed in batches.
void write_call(benchmark::State& state) {
  const auto writer = std::make_unique<RecordWriter>(&keep_packet, &some_name, nullptr);
  writer->start_window(1, 130001);
  CallRecord record = {};
  record.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  record.domain = 1;
  record.call_class = 1;
  uint32_t noise = 1;
  for (auto _ : state) {
    noise = noise * 1664525 + 1013904223;
    record.begin_ns += 15'000 + (noise >> 20);
    record.end_ns = record.begin_ns + 4'000 + (noise >> 22);
    ++record.correlation_id;
    writer->take_call(record, 1, 1);
  }
  writer->flush();
}
BENCHMARK(write_call);

}  // namespace
}  // namespace idlescope::cuda

BENCHMARK_MAIN();
