// The application's CUDA calls, each with its callbacks, and what tests set and read.
#include "tests/fake_cupti/fake_cupti.h"

#include <time.h>

#include <algorithm>

#include "tests/fake_cupti/world.h"

namespace fake_cupti {
namespace {

struct OpenCall {
  CUpti_CallbackData runtime;
  CUpti_CallbackData driver;
};

thread_local OpenCall open_call;

void site(CUpti_CallbackDomain domain, uint32_t id, CUpti_ApiCallbackSite where,
          uint32_t correlation, const void* params, int* result, const char* name) {
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (world->callback == nullptr || world->enabled.count({domain, id}) == 0) return;
    callback = world->callback;
    user = world->user;
  }
  CUpti_CallbackData data = {};
  data.callbackSite = where;
  data.functionName = name;
  data.functionParams = params;
  data.functionReturnValue = where == CUPTI_API_EXIT ? result : nullptr;
  data.contextUid = 1;
  // A call entered before the attach has no word of ours: nobody may count on one.
  data.correlationData = nullptr;
  data.correlationId = correlation;
  callback(user, domain, id, &data);
}

uint32_t next_correlation() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return ++world->correlation;
}

// A runtime call with a driver call inside. `inside` does the work of the driver.
template <typename Runtime, typename Driver, typename Inside>
uint32_t call(uint32_t runtime_id, const Runtime& runtime, uint32_t driver_id, const Driver& driver,
              bool driver_only, Inside inside) {
  const uint32_t correlation = next_correlation();
  int result = 0;
  if (!driver_only) {
    site(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_id, CUPTI_API_ENTER, correlation, &runtime, &result,
         "runtime");
  }
  if (driver_id != 0) {
    site(CUPTI_CB_DOMAIN_DRIVER_API, driver_id, CUPTI_API_ENTER, correlation, &driver, &result,
         "driver");
  }
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    spend(world->call_ns);
    inside(correlation);
    deliver_ready(false, false);
  }
  if (driver_id != 0) {
    site(CUPTI_CB_DOMAIN_DRIVER_API, driver_id, CUPTI_API_EXIT, correlation, &driver, &result,
         "driver");
  }
  if (!driver_only) {
    site(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_id, CUPTI_API_EXIT, correlation, &runtime, &result,
         "runtime");
  }
  return correlation;
}

template <typename Pointer>
Pointer as_handle(uint64_t value) {
  return reinterpret_cast<Pointer>(value);
}

}  // namespace

void reset(uint32_t version, bool virtual_clock) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world = std::make_unique<World>();
  world->version = version;
  world->virtual_clock = virtual_clock;
  // The recorder stamps calls with the real clock: start there, so that both agree.
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  world->clock_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t now_ns() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return clock_ns();
}
void advance_ns(int64_t duration_ns) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  spend(duration_ns);
  settle();
}
void set_call_ns(int64_t duration_ns) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world->call_ns = duration_ns;
}
void fail(const std::string& function, CUptiResult result, int count) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world->errors[function] = {result, count};
}
uint64_t calls(const std::string& function) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return world->calls[function];
}
void watch(std::function<void(const std::string& function)> watcher) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world->watcher = std::move(watcher);
}
void hold_by_other_tool(const std::string& name) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world->other_tool = name;
}

uint32_t launch(const Op& op) {
  cudaLaunchKernel_v7000_params runtime = {};
  runtime.stream = as_handle<cudaStream_t>(op.stream);
  cuLaunchKernel_params driver = {};
  driver.hStream = as_handle<CUstream>(op.stream);
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, driver, op.driver_only,
              [&](uint32_t correlation) { trace_kernel(op, correlation, 0); });
}

uint32_t launch_in_two_halves(const Op& op, const std::function<void()>& between) {
  cudaLaunchKernel_v7000_params params = {};
  const uint32_t correlation = next_correlation();
  int result = 0;
  const auto id = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_ENTER, correlation, &params, &result, "r");
  between();
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    trace_kernel(op, correlation, 0);
  }
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_EXIT, correlation, &params, &result, "r");
  return correlation;
}

uint32_t copy(const Op& op) {
  cudaMemcpyAsync_v3020_params runtime = {};
  runtime.count = op.bytes;
  runtime.kind = static_cast<cudaMemcpyKind>(op.copy_kind);
  runtime.stream = as_handle<cudaStream_t>(op.stream);
  cuMemcpyHtoDAsync_v2_params driver = {};
  driver.ByteCount = op.bytes;
  driver.hStream = as_handle<CUstream>(op.stream);
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, driver, op.driver_only,
              [&](uint32_t correlation) { trace_copy(op, correlation); });
}

uint32_t set_memory(const Op& op) {
  cudaMemsetAsync_v3020_params runtime = {};
  runtime.count = op.bytes;
  runtime.stream = as_handle<cudaStream_t>(op.stream);
  cuMemsetD8Async_params driver = {};
  driver.N = op.bytes;
  driver.hStream = as_handle<CUstream>(op.stream);
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, driver, op.driver_only,
              [&](uint32_t correlation) { trace_memset(op, correlation); });
}

uint32_t launch_graph(const Op& op) {
  cudaGraphLaunch_v10000_params runtime = {};
  runtime.graphExec = as_handle<cudaGraphExec_t>(0x1000 + op.graph_id);
  runtime.stream = as_handle<cudaStream_t>(op.stream);
  cuGraphLaunch_params driver = {};
  driver.hGraph = as_handle<CUgraphExec>(0x1000 + op.graph_id);
  driver.hStream = as_handle<CUstream>(op.stream);
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, driver, op.driver_only,
              [&](uint32_t correlation) { trace_graph(op, correlation); });
}

uint32_t synchronize_stream(uint64_t stream) {
  cudaStreamSynchronize_v3020_params runtime = {as_handle<cudaStream_t>(stream)};
  cuStreamSynchronize_params driver = {as_handle<CUstream>(stream)};
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, driver, false, [&](uint32_t) {
                const int64_t wait_ns = world->stream_free_ns[stream] - clock_ns();
                if (wait_ns > 0) spend(wait_ns);
                settle();
              });
}

uint32_t synchronize_device() {
  const uint32_t correlation = next_correlation();
  int result = 0;
  const auto id = CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020;
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_ENTER, correlation, nullptr, &result, "d");
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    int64_t last_ns = clock_ns();
    for (const auto& [stream, free_ns] : world->stream_free_ns)
      last_ns = std::max(last_ns, free_ns);
    spend(last_ns - clock_ns());
    settle();
  }
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_EXIT, correlation, nullptr, &result, "d");
  return correlation;
}

uint32_t allocate(uint64_t bytes) {
  cudaMalloc_v3020_params runtime = {nullptr, bytes};
  cuMemAlloc_v2_params driver = {};
  driver.bytesize = bytes;
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, driver, false, [](uint32_t) {});
}

uint32_t record_event(uint64_t event, uint64_t stream) {
  cudaEventRecord_v3020_params runtime = {as_handle<cudaEvent_t>(event),
                                          as_handle<cudaStream_t>(stream)};
  cuEventRecord_params driver = {as_handle<CUevent>(event), as_handle<CUstream>(stream)};
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuEventRecord, driver, false, [](uint32_t) {});
}

uint32_t wait_event(uint64_t event, uint64_t stream) {
  cudaStreamWaitEvent_v3020_params runtime = {};
  runtime.event = as_handle<cudaEvent_t>(event);
  runtime.stream = as_handle<cudaStream_t>(stream);
  cuStreamWaitEvent_params driver = {};
  driver.hEvent = as_handle<CUevent>(event);
  driver.hStream = as_handle<CUstream>(stream);
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, driver, false, [](uint32_t) {});
}

uint32_t begin_capture(uint64_t stream) {
  cudaStreamBeginCapture_v10000_params runtime = {};
  runtime.stream = as_handle<cudaStream_t>(stream);
  cuStreamBeginCapture_v2_params driver = {};
  driver.hStream = as_handle<CUstream>(stream);
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, driver, false, [](uint32_t) {});
}

uint32_t end_capture(uint64_t stream) {
  cudaStreamEndCapture_v10000_params runtime = {};
  runtime.stream = as_handle<cudaStream_t>(stream);
  cuStreamEndCapture_params driver = {};
  driver.hStream = as_handle<CUstream>(stream);
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, driver, false, [](uint32_t) {});
}

uint32_t query_stream(uint64_t stream) {
  cudaStreamQuery_v3020_params runtime = {as_handle<cudaStream_t>(stream)};
  cuStreamQuery_params driver = {as_handle<CUstream>(stream)};
  return call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020, runtime,
              CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, driver, false, [](uint32_t) {});
}

void enter_launch(const Op& op) {
  static thread_local cudaLaunchKernel_v7000_params params;
  params.stream = as_handle<cudaStream_t>(op.stream);
  open_call = {};
  open_call.runtime.correlationId = next_correlation();
  open_call.runtime.functionParams = &params;
  int result = 0;
  site(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
       CUPTI_API_ENTER, open_call.runtime.correlationId, &params, &result, "runtime");
  std::lock_guard<std::recursive_mutex> lock(mutex);
  spend(world->call_ns);
  trace_kernel(op, open_call.runtime.correlationId, 0);
}

void leave_launch() {
  int result = 0;
  site(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_API_EXIT,
       open_call.runtime.correlationId, open_call.runtime.functionParams, &result, "runtime");
}

bool attached() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return world->attached;
}
bool kind_enabled(CUpti_ActivityKind kind) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return world->kinds.count(kind) != 0;
}
uint64_t enabled_callbacks() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return world->enabled.size();
}
uint64_t dropped() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return world->dropped;
}
void give_no_buffers(bool on) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world->no_buffers = on;
}
uint64_t kernels_traced() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return world->kernels;
}

}  // namespace fake_cupti
