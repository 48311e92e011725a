#include "tests/fake_cupti/fake_cupti.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace fake_cupti {
namespace {

struct PendingRecord {
  size_t offset;
  int64_t start_ns;
  int64_t end_ns;
};

struct Buffer {
  uint8_t* data = nullptr;
  size_t capacity = 0;
  size_t used = 0;
  std::vector<PendingRecord> pending;  // not yet complete
};

struct Error {
  CUptiResult result;
  int count;
};

struct OpenCall {
  CUpti_CallbackData runtime;
  CUpti_CallbackData driver;
  uint64_t runtime_word = 0;
  uint64_t driver_word = 0;
};

struct World {
  uint32_t version = 130001;
  bool virtual_clock = true;
  int64_t clock_ns = 1'000'000'000;
  int64_t call_ns = 2000;
  std::map<std::string, Error> errors;
  std::map<std::string, uint64_t> calls;
  std::string other_tool;

  bool attached = false;
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<int, uint32_t>> enabled;
  std::set<int> kinds;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc timestamp = nullptr;
  uint32_t correlation = 0;
  std::deque<Buffer> buffers;  // the last one is being filled
  std::map<uint64_t, int64_t> stream_free_ns;
  std::set<std::string> names;  // stable strings
  uint64_t dropped = 0;
  uint64_t kernels = 0;
  bool no_buffers = false;
};

std::recursive_mutex mutex;

// Made at first use: the library's constructors come before its static objects.
std::unique_ptr<World>& the_world() {
  static auto* only = new std::unique_ptr<World>(std::make_unique<World>());
  return *only;
}
#define world the_world()

thread_local OpenCall open_call;

int64_t clock_ns() {
  if (world->virtual_clock) return world->clock_ns;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void spend(int64_t duration_ns) {
  if (world->virtual_clock) {
    world->clock_ns += duration_ns;
    return;
  }
  const int64_t until_ns = clock_ns() + duration_ns;
  while (clock_ns() < until_ns) {
  }
}

// Counts the call; the scripted error, if there is one.
CUptiResult enter(const char* function) {
  ++world->calls[function];
  auto found = world->errors.find(function);
  if (found == world->errors.end() || found->second.count == 0) return CUPTI_SUCCESS;
  if (found->second.count > 0) --found->second.count;
  return found->second.result;
}

void settle() {
  const int64_t now = clock_ns();
  for (Buffer& buffer : world->buffers) {
    std::erase_if(buffer.pending, [&](const PendingRecord& record) {
      if (record.end_ns > now) return false;
      auto* kind = reinterpret_cast<CUpti_Activity*>(buffer.data + record.offset);
      const auto start = static_cast<uint64_t>(record.start_ns);
      const auto end = static_cast<uint64_t>(record.end_ns);
      const auto write = [&](auto* typed) {
        typed->start = start;
        typed->end = end;
      };
      switch (kind->kind) {
        case CUPTI_ACTIVITY_KIND_MEMCPY:
          write(reinterpret_cast<CUpti_ActivityMemcpy6*>(kind));
          break;
        case CUPTI_ACTIVITY_KIND_MEMSET:
          write(reinterpret_cast<CUpti_ActivityMemset4*>(kind));
          break;
        case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
          write(reinterpret_cast<CUpti_ActivityGraphTrace2*>(kind));
          break;
        default:
          write(reinterpret_cast<CUpti_ActivityKernel10*>(kind));
          break;
      }
      return true;
    });
  }
}

void deliver(Buffer& buffer) {
  world->complete(nullptr, 0, buffer.data, buffer.capacity, buffer.used);
}

// Full buffers whose records are complete go back; `all`: partly filled ones too; `force`:
// also those with unfinished records.
void deliver_ready(bool all, bool force) {
  settle();
  std::deque<Buffer> kept;
  for (size_t i = 0; i < world->buffers.size(); ++i) {
    Buffer& buffer = world->buffers[i];
    const bool filling = i + 1 == world->buffers.size();
    const bool ready = (buffer.pending.empty() || force) && (all || !filling);
    if (ready) {
      deliver(buffer);
    } else {
      kept.push_back(buffer);
    }
  }
  world->buffers = kept;
}

size_t record_bytes(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    default:
      return world->version < 130000 ? sizeof(CUpti_ActivityKernel9)
                                     : sizeof(CUpti_ActivityKernel10);
  }
}

template <typename Record>
void append(Record record, size_t bytes, const PendingRecord& times) {
  if (!world->buffers.empty() &&
      world->buffers.back().used + bytes > world->buffers.back().capacity) {
    world->buffers.push_back({});
    deliver_ready(false, false);
    if (!world->buffers.empty() && world->buffers.back().data == nullptr) world->buffers.pop_back();
    world->buffers.push_back({});
  }
  if (world->buffers.empty() || world->buffers.back().data == nullptr) {
    if (world->buffers.empty()) world->buffers.push_back({});
    Buffer& fresh = world->buffers.back();
    size_t records = 0;
    if (world->request != nullptr && !world->no_buffers) {
      world->request(&fresh.data, &fresh.capacity, &records);
    }
    if (fresh.data == nullptr || fresh.capacity < bytes) {
      world->buffers.pop_back();
      ++world->dropped;
      return;
    }
  }
  Buffer& buffer = world->buffers.back();
  memcpy(buffer.data + buffer.used, &record, bytes);
  buffer.pending.push_back({buffer.used, times.start_ns, times.end_ns});
  buffer.used += bytes;
}

int64_t device_start(uint64_t stream, int64_t duration_ns, int64_t* end_ns) {
  int64_t& free_ns = world->stream_free_ns[stream];
  const int64_t start = std::max(free_ns, clock_ns() + 1000);
  free_ns = start + duration_ns;
  *end_ns = free_ns;
  return start;
}

const char* stable(const std::string& name) { return world->names.insert(name).first->c_str(); }

void trace_kernel(const Op& op, uint32_t correlation, uint64_t node) {
  int64_t end = 0;
  const int64_t start = device_start(op.stream, op.duration_ns, &end);
  if (world->kinds.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 0) return;
  ++world->kernels;
  CUpti_ActivityKernel10 k = {};
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.contextId = 1;
  k.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
  k.gridX = 128;
  k.gridY = k.gridZ = 1;
  k.blockX = 256;
  k.blockY = k.blockZ = 1;
  k.registersPerThread = 32;
  k.dynamicSharedMemory = 1024;
  k.correlationId = correlation;
  k.name = stable(op.name);
  k.graphId = op.graph_id;
  k.graphNodeId = node;
  append(k, world->version < 130000 ? sizeof(CUpti_ActivityKernel9) : sizeof k, {0, start, end});
}

void trace_copy(const Op& op, uint32_t correlation) {
  int64_t end = 0;
  const int64_t start = device_start(op.stream, op.duration_ns, &end);
  if (world->kinds.count(CUPTI_ACTIVITY_KIND_MEMCPY) == 0) return;
  CUpti_ActivityMemcpy6 m = {};
  m.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  m.copyKind = op.copy_kind == 2   ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
               : op.copy_kind == 3 ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
                                   : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  m.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  m.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  m.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  m.bytes = op.bytes;
  m.contextId = 1;
  m.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
  m.correlationId = correlation;
  append(m, sizeof m, {0, start, end});
}

void trace_memset(const Op& op, uint32_t correlation) {
  int64_t end = 0;
  const int64_t start = device_start(op.stream, op.duration_ns, &end);
  if (world->kinds.count(CUPTI_ACTIVITY_KIND_MEMSET) == 0) return;
  CUpti_ActivityMemset4 m = {};
  m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  m.bytes = op.bytes;
  m.contextId = 1;
  m.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
  m.correlationId = correlation;
  m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  append(m, sizeof m, {0, start, end});
}

void site(CUpti_CallbackDomain domain, uint32_t id, CUpti_ApiCallbackSite where,
          uint32_t correlation, const void* params, int* result, uint64_t* word, const char* name) {
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
  data.correlationData = word;
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
  uint64_t outer = 0;
  uint64_t inner = 0;
  if (!driver_only) {
    site(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_id, CUPTI_API_ENTER, correlation, &runtime, &result,
         &outer, "runtime");
  }
  if (driver_id != 0) {
    site(CUPTI_CB_DOMAIN_DRIVER_API, driver_id, CUPTI_API_ENTER, correlation, &driver, &result,
         &inner, "driver");
  }
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    spend(world->call_ns);
    inside(correlation);
    deliver_ready(false, false);
  }
  if (driver_id != 0) {
    site(CUPTI_CB_DOMAIN_DRIVER_API, driver_id, CUPTI_API_EXIT, correlation, &driver, &result,
         &inner, "driver");
  }
  if (!driver_only) {
    site(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_id, CUPTI_API_EXIT, correlation, &runtime, &result,
         &outer, "runtime");
  }
  return correlation;
}

template <typename Pointer>
Pointer as_handle(uint64_t value) {
  return reinterpret_cast<Pointer>(value);
}

// ------------------------------------------------------------------ the table

CUptiResult CUPTIAPI get_version(uint32_t* version) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  *version = world->version;
  return enter("GetVersion");
}
CUptiResult CUPTIAPI get_result_string(CUptiResult result, const char** text) {
  static thread_local char buffer[32];
  snprintf(buffer, sizeof buffer, "FAKE_RESULT_%d", static_cast<int>(result));
  *text = buffer;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI get_timestamp(uint64_t* timestamp) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  *timestamp = static_cast<uint64_t>(clock_ns()) + 5'000'000;
  return enter("GetTimestamp");
}
CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                               void* user) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("Subscribe");
  if (result != CUPTI_SUCCESS) return result;
  if (!world->other_tool.empty() || world->attached) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  world->attached = true;
  world->callback = callback;
  world->user = user;
  world->correlation = 0;  // ids restart at every attach
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(uint64_t{0x5b});
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI subscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                  void* user, CUpti_SubscriberParams* params) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!world->other_tool.empty() && params != nullptr && params->oldSubscriberName != nullptr) {
    strncpy(params->oldSubscriberName, world->other_tool.c_str(), params->oldSubscriberSize - 1);
  }
  return subscribe(handle, callback, user);
}
CUptiResult CUPTIAPI unsubscribe(CUpti_SubscriberHandle) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world->callback = nullptr;
  return enter("Unsubscribe");
}
CUptiResult CUPTIAPI enable_callback(uint32_t on, CUpti_SubscriberHandle,
                                     CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("EnableCallback");
  if (result != CUPTI_SUCCESS) return result;
  // Numbers that CUPTI 12 does not have yet.
  if (world->version < 130000 &&
      id >= (domain == CUPTI_CB_DOMAIN_RUNTIME_API ? uint32_t{487} : uint32_t{782})) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (on != 0) {
    world->enabled.insert({domain, id});
  } else {
    world->enabled.erase({domain, id});
  }
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                        CUpti_BuffersCallbackCompleteFunc complete) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityRegisterCallbacks");
  if (result != CUPTI_SUCCESS) return result;
  world->request = request;
  world->complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI activity_enable(CUpti_ActivityKind kind) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityEnable");
  if (result == CUPTI_SUCCESS) world->kinds.insert(kind);
  return result;
}
CUptiResult CUPTIAPI activity_disable(CUpti_ActivityKind kind) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityDisable");
  if (result == CUPTI_SUCCESS) world->kinds.erase(kind);
  return result;
}
CUptiResult CUPTIAPI flush_all(uint32_t flag) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityFlushAll");
  if (result != CUPTI_SUCCESS) return result;
  if (world->complete == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  deliver_ready(true, (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityGetNextRecord");
  if (result != CUPTI_SUCCESS) return result;
  uint8_t* next =
      *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + record_bytes(*record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI dropped_records(CUcontext, uint32_t, size_t* count) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  *count = world->dropped;
  world->dropped = 0;
  return enter("ActivityGetNumDroppedRecords");
}
CUptiResult CUPTIAPI finalize() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("Finalize");
  if (result != CUPTI_SUCCESS) return result;
  world->attached = false;
  world->callback = nullptr;
  world->enabled.clear();
  world->kinds.clear();
  world->buffers.clear();
  world->request = nullptr;
  world->complete = nullptr;
  world->timestamp = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI register_timestamp(CUpti_TimestampCallbackFunc callback) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityRegisterTimestampCallback");
  if (result == CUPTI_SUCCESS) world->timestamp = callback;
  return result;
}
CUptiResult CUPTIAPI set_thread_id_type(CUpti_ActivityThreadIdType) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return enter("SetThreadIdType");
}

constexpr idlescope::cuda::CuptiApi kTable = {
    get_version,      get_result_string, get_timestamp,      subscribe,
    unsubscribe,      enable_callback,   register_callbacks, activity_enable,
    activity_disable, flush_all,         next_record,        dropped_records,
    finalize,         subscribe_v2,      register_timestamp, set_thread_id_type};

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

const idlescope::cuda::CuptiApi& table() { return kTable; }

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
  uint64_t word = 0;
  const auto id = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_ENTER, correlation, &params, &result, &word, "r");
  between();
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    trace_kernel(op, correlation, 0);
  }
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_EXIT, correlation, &params, &result, &word, "r");
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
  return call(
      CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, runtime,
      CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, driver, op.driver_only, [&](uint32_t correlation) {
        if (world->kinds.count(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) != 0) {
          int64_t end = 0;
          const int64_t start = device_start(op.stream, op.duration_ns * op.graph_nodes, &end);
          CUpti_ActivityGraphTrace2 g = {};
          g.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
          g.correlationId = correlation;
          g.contextId = 1;
          g.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
          g.graphId = op.graph_id;
          append(g, sizeof g, {0, start, end});
          return;
        }
        for (uint32_t i = 0; i < op.graph_nodes; ++i) trace_kernel(op, correlation, i + 1);
      });
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
  uint64_t word = 0;
  const auto id = CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020;
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_ENTER, correlation, nullptr, &result, &word, "d");
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    int64_t last_ns = clock_ns();
    for (const auto& [stream, free_ns] : world->stream_free_ns)
      last_ns = std::max(last_ns, free_ns);
    spend(last_ns - clock_ns());
    settle();
  }
  site(CUPTI_CB_DOMAIN_RUNTIME_API, id, CUPTI_API_EXIT, correlation, nullptr, &result, &word, "d");
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
       CUPTI_API_ENTER, open_call.runtime.correlationId, &params, &result, &open_call.runtime_word,
       "runtime");
  std::lock_guard<std::recursive_mutex> lock(mutex);
  spend(world->call_ns);
  trace_kernel(op, open_call.runtime.correlationId, 0);
}

void leave_launch() {
  int result = 0;
  site(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_API_EXIT,
       open_call.runtime.correlationId, open_call.runtime.functionParams, &result,
       &open_call.runtime_word, "runtime");
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
