#include "profiler/cuda/call_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "profiler/cuda/cupti_versions.h"
#include "profiler/cuda/record_decode.h"
#include "profiler/emit/device_packets.h"
#include "proto/trace.pb.h"

namespace idlescope::cuda {
namespace {

CallRecord decode(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* params,
                  bool failed = false) {
  CallRecord record = {};
  const CallFunction* function = find_call(domain, id);
  EXPECT_NE(function, nullptr);
  if (function != nullptr) decode_call(*function, params, failed, &record);
  return record;
}
#define DECODE(domain, name, params) \
  decode(CUPTI_CB_DOMAIN_##domain##_API, CUPTI_##domain##_TRACE_CBID_##name, params)

template <typename Handle>
Handle handle(uint64_t value) {
  return reinterpret_cast<Handle>(value);
}

TEST(CallTable, FindsEachFunctionOnceByItsId) {
  uint32_t count = 0;
  const CallFunction* functions = call_functions(&count);
  ASSERT_GT(count, 250u);
  std::set<std::pair<int, uint32_t>> seen;
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_TRUE(seen.insert({functions[i].domain, functions[i].id}).second) << functions[i].name;
    EXPECT_EQ(find_call(functions[i].domain, functions[i].id), &functions[i]);
  }
  EXPECT_EQ(find_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020),
            nullptr);
  EXPECT_EQ(find_call(CUPTI_CB_DOMAIN_DRIVER_API, 1u << 20), nullptr);
  EXPECT_EQ(find_call(CUPTI_CB_DOMAIN_RESOURCE, 1), nullptr);
}

TEST(CallTable, NamesLoseTheRuntimeVersionOnly) {
  const auto name = [](CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    char text[128];
    call_name(*find_call(domain, id), text, sizeof text);
    return std::string(text);
  };
  EXPECT_EQ(name(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
            "cudaLaunchKernel");
  EXPECT_EQ(name(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000),
            "cudaMemcpyAsync_ptsz");
  EXPECT_EQ(name(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2),
            "cuMemcpyHtoDAsync_v2");
}

TEST(CallTable, Copies) {
  cudaMemcpyAsync_v3020_params async = {};
  async.count = 123;
  async.kind = cudaMemcpyDeviceToHost;
  async.stream = handle<cudaStream_t>(0x77);
  CallRecord record = DECODE(RUNTIME, cudaMemcpyAsync_v3020, &async);
  EXPECT_EQ(record.call_class, trace::CALL_MEMCPY);
  EXPECT_EQ(record.bytes, 123u);
  EXPECT_EQ(record.copy_kind, trace::COPY_D2H);
  EXPECT_EQ(record.stream_handle, 0x77u);

  cudaMemcpy2DAsync_v3020_params two = {};
  two.width = 10;
  two.height = 20;
  two.kind = cudaMemcpyHostToDevice;
  record = DECODE(RUNTIME, cudaMemcpy2DAsync_v3020, &two);
  EXPECT_EQ(record.bytes, 200u);
  EXPECT_EQ(record.copy_kind, trace::COPY_H2D);

  cudaMemcpy3DParms box = {};
  box.extent = {4, 5, 6};
  box.kind = cudaMemcpyDeviceToDevice;
  cudaMemcpy3D_v3020_params three = {&box};
  record = DECODE(RUNTIME, cudaMemcpy3D_v3020, &three);
  EXPECT_EQ(record.bytes, 120u);
  EXPECT_EQ(record.copy_kind, trace::COPY_D2D);
  three.p = nullptr;
  EXPECT_EQ(DECODE(RUNTIME, cudaMemcpy3D_v3020, &three).bytes, 0u);

  cudaMemcpyPeer_v4000_params peer = {};
  peer.count = 9;
  record = DECODE(RUNTIME, cudaMemcpyPeer_v4000, &peer);
  EXPECT_EQ(record.copy_kind, trace::COPY_P2P);
  EXPECT_EQ(record.bytes, 9u);

  cuMemcpyDtoHAsync_v2_params driver = {};
  driver.ByteCount = 55;
  driver.hStream = handle<CUstream>(3);
  record = DECODE(DRIVER, cuMemcpyDtoHAsync_v2, &driver);
  EXPECT_EQ(record.copy_kind, trace::COPY_D2H);
  EXPECT_EQ(record.bytes, 55u);
  EXPECT_EQ(record.stream_handle, 3u);

  CUDA_MEMCPY2D plane = {};
  plane.WidthInBytes = 7;
  plane.Height = 3;
  cuMemcpy2D_v2_params flat = {&plane};
  EXPECT_EQ(DECODE(DRIVER, cuMemcpy2D_v2, &flat).bytes, 21u);

  cuMemcpyDtoD_v2_params inside = {};
  inside.ByteCount = 1;
  EXPECT_EQ(DECODE(DRIVER, cuMemcpyDtoD_v2, &inside).copy_kind, trace::COPY_D2D);
  cuMemcpyPeer_params between = {};
  EXPECT_EQ(DECODE(DRIVER, cuMemcpyPeer, &between).copy_kind, trace::COPY_P2P);

  const size_t sizes[] = {10, 20, 30};
  cudaMemcpyBatchAsync_v13000_params batch = {};
  batch.sizes = sizes;
  batch.count = 3;
  EXPECT_EQ(DECODE(RUNTIME, cudaMemcpyBatchAsync_v13000, &batch).bytes, 60u);
}

TEST(CallTable, Memsets) {
  cudaMemsetAsync_v3020_params runtime = {};
  runtime.count = 40;
  CallRecord record = DECODE(RUNTIME, cudaMemsetAsync_v3020, &runtime);
  EXPECT_EQ(record.call_class, trace::CALL_MEMSET);
  EXPECT_EQ(record.bytes, 40u);
  cuMemsetD32Async_params words = {};
  words.N = 10;
  EXPECT_EQ(DECODE(DRIVER, cuMemsetD32Async, &words).bytes, 40u);
  cuMemsetD2D16_v2_params plane = {};
  plane.Width = 3;
  plane.Height = 4;
  EXPECT_EQ(DECODE(DRIVER, cuMemsetD2D16_v2, &plane).bytes, 24u);
}

TEST(CallTable, LaunchesTakeTheStreamFromTheConfiguration) {
  cudaLaunchConfig_t config = {};
  config.stream = handle<cudaStream_t>(0x42);
  cudaLaunchKernelExC_v11060_params runtime = {};
  runtime.config = &config;
  EXPECT_EQ(DECODE(RUNTIME, cudaLaunchKernelExC_v11060, &runtime).stream_handle, 0x42u);
  CUlaunchConfig driver_config = {};
  driver_config.hStream = handle<CUstream>(0x43);
  cuLaunchKernelEx_params driver = {};
  driver.config = &driver_config;
  EXPECT_EQ(DECODE(DRIVER, cuLaunchKernelEx, &driver).stream_handle, 0x43u);
}

TEST(CallTable, EventsGraphsAllocations) {
  cudaStreamWaitEvent_v3020_params wait = {};
  wait.stream = handle<cudaStream_t>(1);
  wait.event = handle<cudaEvent_t>(2);
  CallRecord record = DECODE(RUNTIME, cudaStreamWaitEvent_v3020, &wait);
  EXPECT_EQ(record.call_class, trace::CALL_STREAM_WAIT_EVENT);
  EXPECT_EQ(record.object, 2u);
  EXPECT_EQ(record.stream_handle, 1u);

  cuGraphLaunch_params launch = {};
  launch.hGraph = handle<CUgraphExec>(0x99);
  EXPECT_EQ(DECODE(DRIVER, cuGraphLaunch, &launch).object, 0x99u);

  cudaGraphExec_t exec = handle<cudaGraphExec_t>(0x98);
  cudaGraphInstantiate_v12000_params make = {};
  make.pGraphExec = &exec;
  record = DECODE(RUNTIME, cudaGraphInstantiate_v12000, &make);
  EXPECT_EQ(record.call_class, trace::CALL_GRAPH_INSTANTIATE);
  EXPECT_EQ(record.object, 0x98u);
  // A failed call leaves its output undefined: it is not read.
  make.pGraphExec = handle<cudaGraphExec_t*>(0x1);
  record = decode(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000,
                  &make, true);
  EXPECT_EQ(record.object, 0u);

  cudaMalloc_v3020_params allocate = {nullptr, 512};
  record = DECODE(RUNTIME, cudaMalloc_v3020, &allocate);
  EXPECT_EQ(record.call_class, trace::CALL_ALLOC_DEVICE);
  EXPECT_EQ(record.bytes, 512u);
  cudaHostAlloc_v3020_params pinned = {};
  pinned.size = 64;
  record = DECODE(RUNTIME, cudaHostAlloc_v3020, &pinned);
  EXPECT_EQ(record.call_class, trace::CALL_ALLOC_PINNED);
  EXPECT_EQ(record.bytes, 64u);
  EXPECT_EQ(DECODE(RUNTIME, cudaDeviceSynchronize_v3020, nullptr).call_class,
            trace::CALL_DEVICE_SYNC);
}

TEST(CallTable, EnumeratorsAreThoseOfTheContract) {
  EXPECT_EQ(emit::kOpGraph, trace::OP_GRAPH);
  EXPECT_EQ(emit::kCopyH2H, trace::COPY_H2H);
  EXPECT_EQ(emit::kMemoryManaged, trace::MEMORY_MANAGED);
  EXPECT_EQ(emit::kCallLaunch, trace::CALL_LAUNCH);
  EXPECT_EQ(emit::kCallModuleLoad, trace::CALL_MODULE_LOAD);
  EXPECT_EQ(emit::kCallCaptureEnd, trace::CALL_CAPTURE_END);
  EXPECT_EQ(emit::kCallOther, trace::CALL_OTHER);
  EXPECT_EQ(emit::kKindGraphNode, static_cast<uint32_t>(trace::KIND_GRAPH_NODE));
  EXPECT_EQ(emit::kKindOverhead, static_cast<uint32_t>(trace::KIND_OVERHEAD));
  EXPECT_EQ(emit::kLossFile, static_cast<uint32_t>(trace::LOSS_FILE));
  EXPECT_EQ(emit::kStateHostOnly, static_cast<uint32_t>(trace::Status::STATE_HOST_ONLY));
  EXPECT_EQ(emit::kDomainDriver, trace::HostCallDescriptor::DOMAIN_DRIVER);
}

TEST(RecordDecode, PeerCopyNamesTheOtherDevice) {
  CUpti_ActivityMemcpyPtoP4 copy = {};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  copy.start = 10;
  copy.end = 30;
  copy.bytes = 5;
  copy.deviceId = 1;
  copy.srcDeviceId = 1;
  copy.dstDeviceId = 3;
  DecodedRecord out;
  ASSERT_EQ(decode_record(reinterpret_cast<CUpti_Activity*>(&copy), 130001, &out), Decoded::kOp);
  EXPECT_EQ(out.op.key.peer_device_id_plus_1, 4u);
  EXPECT_EQ(out.op.key.copy_kind, trace::COPY_P2P);
}

TEST(RecordDecode, OverheadOfOldVersionsHasNoCorrelation) {
  CUpti_ActivityOverhead3 overhead = {};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId.pt.threadId = 99;
  overhead.start = 5;
  overhead.end = 9;
  overhead.correlationId = 12;
  DecodedRecord out;
  const auto* record = reinterpret_cast<CUpti_Activity*>(&overhead);
  ASSERT_EQ(decode_record(record, 130001, &out), Decoded::kOverhead);
  EXPECT_EQ(out.overhead.kind, static_cast<uint32_t>(trace::OVERHEAD_LAZY_FUNCTION_LOADING));
  EXPECT_EQ(out.overhead.thread_id, 99u);
  EXPECT_EQ(out.overhead.correlation_id, 12u);
  ASSERT_EQ(decode_record(record, 20, &out), Decoded::kOverhead);
  EXPECT_EQ(out.overhead.correlation_id, 0u);
}

TEST(RecordDecode, ZeroTimesAreIncompleteAndOtherKindsIgnored) {
  CUpti_ActivityKernel10 kernel = {};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = 7;
  DecodedRecord out;
  EXPECT_EQ(decode_record(reinterpret_cast<CUpti_Activity*>(&kernel), 130001, &out),
            Decoded::kIncomplete);
  EXPECT_EQ(out.trace_kind, static_cast<uint32_t>(trace::KIND_KERNEL));
  kernel.kind = CUPTI_ACTIVITY_KIND_MARKER;
  EXPECT_EQ(decode_record(reinterpret_cast<CUpti_Activity*>(&kernel), 130001, &out),
            Decoded::kOther);
}

TEST(VersionFacts, GraphsAreTrustedOnlyWhereTested) {
  EXPECT_FALSE(version_facts(18).usable);
  EXPECT_TRUE(version_facts(19).usable);
  EXPECT_EQ(version_facts(23).graphs, GraphDetach::kNever);
  EXPECT_EQ(version_facts(28).graphs, GraphDetach::kNever);
  EXPECT_EQ(version_facts(130001).graphs, GraphDetach::kNever);
  EXPECT_EQ(version_facts(140000).first, 130000u);
}

}  // namespace
}  // namespace idlescope::cuda
