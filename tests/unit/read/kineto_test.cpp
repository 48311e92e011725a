// The PyTorch profiler importer: dialects, exact times, what rows mean.
#include "analysis/read/kineto_json.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <fmt/format.h>

#include "analysis/read/call_class.h"
#include "analysis/read/decimal_time.h"
#include "analysis/read/recording.h"
#include "proto/messages.h"
#include "tests/unit/read/kineto_text.h"

namespace idlescope::read {
namespace {

using namespace kineto_text;

TEST(Kineto, KernelsMeetTheirLaunch) {
  const Imported got = import(object(call(5, "100", "10") + "," + kernel(5, "120", "30")));
  ASSERT_TRUE(got.done) << got.done.error().text();
  const Process& process = got.process();
  ASSERT_EQ(process.ops.size(), 1u);
  EXPECT_EQ(process.ops[0].begin_ns, 120'000);
  EXPECT_EQ(process.ops[0].end_ns, 150'000);
  EXPECT_EQ(process.ops[0].call, 0u);
  const OpDescriptor& op = process.op_descriptors[process.ops[0].descriptor];
  EXPECT_EQ(op.kind, trace::OP_KERNEL);
  EXPECT_EQ(op.grid[0], 50u);
  EXPECT_EQ(op.grid[1], 2u);
  EXPECT_EQ(op.block[0], 256u);
  EXPECT_EQ(op.registers_per_thread, 38u);
  EXPECT_EQ(op.shared_bytes, 16u);
  EXPECT_EQ(process.streams[op.stream].stream_id, 7u);
  EXPECT_EQ(process.call_descriptors[process.calls[0].descriptor].call_class, trace::CALL_LAUNCH);
  EXPECT_EQ(got.recording.origin, Origin::kKineto);
  EXPECT_EQ(got.recording.grain_ns, 1000);
  EXPECT_EQ(process.main_thread, 9u);
  EXPECT_TRUE(got.recording.anomalies.empty());
}

TEST(Kineto, WindowListsOnlyKindsThatAreThere) {
  const Imported got = import(object(call(5, "100", "10") + "," + kernel(5, "120", "30")));
  const Window& window = got.process().windows.at(0);
  EXPECT_TRUE(window.records(trace::KIND_KERNEL));
  EXPECT_TRUE(window.records(trace::KIND_CALL_SYNC));
  EXPECT_FALSE(window.records(trace::KIND_MEMCPY));
  EXPECT_FALSE(window.records(trace::KIND_LOADER));
  EXPECT_FALSE(window.records(trace::KIND_CALL_MODULE));
  const Imported launches_only = import(object(call(5, "100", "10")));
  EXPECT_FALSE(launches_only.process().windows.at(0).records(trace::KIND_KERNEL));
}

TEST(Kineto, DialectOf2020) {
  const Imported got = import(R"json([
  {
    "ph": "X", "cat": "Operator", "name": "aten::empty", "pid": 67, "tid": "4093687616",
    "ts": 1606910596297023, "dur": 13, "args": {"Device": 0, "External id": 2}
  },
  { "ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 67, "tid": "4093687616",
    "ts": 1606910596297030, "dur": 3, "args": {"cbid": 41, "correlation": 65460}},
  { "ph": "s", "id": 65460, "pid": 67, "tid": 4093687616, "ts": 1606910596297030, "cat": "async",
    "name": "launch"},
  { "ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0,
    "tid": "stream 7", "ts": 1606910596297031, "dur": 2353, "args": {
  "device" : 0, "context" : 1, "stream" : 7, "correlation" : 65460, "bytes" : 19267584}},
  { "ph": "X", "cat": "Operator", "name": "ProfilerStep#2", "pid": 67, "tid": "4093687616",
    "ts": 1606910596297000, "dur": 5000, "args": {}},
  { "ph": "X", "cat": "Operator", "name":
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "pid": 67, "tid": "4093687616",
    "ts": 1606910596297001, "dur": 20, "args": {}}
])json");
  ASSERT_TRUE(got.done) << got.done.error().text();
  const Process& process = got.process();
  ASSERT_EQ(process.ops.size(), 1u);
  EXPECT_EQ(process.ops[0].begin_ns, 1606910596297031000);
  EXPECT_NE(process.ops[0].call, kNone);
  const OpDescriptor& op = process.op_descriptors[0];
  EXPECT_EQ(op.kind, trace::OP_MEMCPY);
  EXPECT_EQ(op.copy_kind, trace::COPY_H2D);
  EXPECT_EQ(op.src_kind, trace::MEMORY_PAGEABLE);
  EXPECT_EQ(op.dst_kind, trace::MEMORY_DEVICE);
  EXPECT_EQ(op.bytes, 19267584u);
  int steps = 0;
  int nexts = 0;
  for (const HostEvent& event : process.host_events) {
    EXPECT_EQ(event.thread_id, 4093687616u);
    if (event.kind == trace::EVENT_STEP) {
      EXPECT_EQ(event.a, trace::STEP_SOURCE_PROFILER);
      EXPECT_EQ(event.b, steps == 0 ? 1 : 2);  // the end of step 1, the end of step 2
      ++steps;
    }
    if (event.kind == trace::EVENT_LOADER_CREATE) {
      EXPECT_EQ(event.a, 0);  // num_workers of the single-process iterator
    }
    if (event.kind == trace::EVENT_LOADER_NEXT) {
      EXPECT_EQ(event.batch, 0);
      ++nexts;
    }
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(nexts, 1);
  EXPECT_EQ(process.header.clock().realtime_ns(), process.first_ns);
}

TEST(Kineto, BaseTimeAfterTheEventsPutsThemOnTheWallClock) {
  const Imported got = import(object(kernel(1, "4203669603187.439", "0.250"), "",
                                     R"(,"baseTimeNanoseconds":1735632360000000000)"));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.process().ops[0].begin_ns, 1735632360000000000 + 4203669603187439);
  EXPECT_EQ(got.process().ops[0].end_ns - got.process().ops[0].begin_ns, 250);
  EXPECT_EQ(got.recording.grain_ns, 1);
}

TEST(Kineto, TimesAreExactDecimals) {
  // As doubles these two differ from the truth by 64 and 112 ns.
  EXPECT_EQ(parse_microseconds("1606910596297023.123")->ns, 1606910596297023123);
  EXPECT_EQ(parse_microseconds("1712195495519695.8")->ns, 1712195495519695800);
  EXPECT_EQ(parse_microseconds("37.502999999999986")->ns, 37503);
  EXPECT_EQ(parse_microseconds("0.0005")->ns, 1);
  EXPECT_EQ(parse_microseconds("0.0004999")->ns, 0);
  EXPECT_EQ(parse_microseconds("-1.5")->ns, -1500);
  EXPECT_EQ(parse_microseconds("1.5e3")->ns, 1'500'000);
  EXPECT_EQ(parse_microseconds("1.712195495519689E15")->ns, 1712195495519689000);
  EXPECT_EQ(parse_microseconds("25e-1")->ns, 2500);
  EXPECT_EQ(parse_microseconds("0")->ns, 0);
  EXPECT_EQ(parse_microseconds("0.00000000000000000000000000001")->ns, 0);
  for (const char* bad :
       {"", "-", "NaN", "Infinity", "1.2.3", "1e", "12a", "1e400", "99999999999999999999999"}) {
    EXPECT_FALSE(parse_microseconds(bad)) << bad;
  }
}

TEST(Kineto, RocmNamesAndMissingContext) {
  const Imported got = import(object(
      call(117, "100.5", "60.2", "hipMemcpyWithStream") + "," +
      R"json({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Host -> Device)","pid":2,"tid":0,)json"
      R"json("ts":101.1,"dur":22.4,"args":{"device":2,"stream":0,"correlation":117,"kind":"HtoD"}})json"));
  ASSERT_TRUE(got.done);
  const Process& process = got.process();
  EXPECT_EQ(process.op_descriptors[0].copy_kind, trace::COPY_H2D);
  EXPECT_EQ(process.op_descriptors[0].src_kind, trace::MEMORY_UNKNOWN);
  EXPECT_EQ(process.devices[0].info.device_id(), 2u);
  EXPECT_EQ(process.call_descriptors[0].call_class, trace::CALL_MEMCPY);
  EXPECT_EQ(process.ops[0].call, 0u);
}

TEST(Kineto, SyncRowsGiveStreamsAndEdges) {
  const Imported got = import(object(
      call(10, "1", "1", "cudaEventRecord") + "," + call(11, "3", "1", "cudaStreamWaitEvent") +
      "," + call(12, "5", "1", "cudaStreamSynchronize") + "," +
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":20,"ts":3,"dur":1,)"
      R"("args":{"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":10,"stream":20,)"
      R"("correlation":11,"device":0,"context":1}},)"
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":5,"dur":1,)"
      R"("args":{"stream":7,"correlation":12,"device":0,"context":1}},)" +
      kernel(13, "7", "1")));
  ASSERT_TRUE(got.done);
  const Process& process = got.process();
  ASSERT_EQ(process.event_edges.size(), 1u);
  EXPECT_EQ(process.calls[process.event_edges[0].record_call].correlation, 10u);
  EXPECT_EQ(process.calls[process.event_edges[0].wait_call].correlation, 11u);
  for (const Call& entry : process.calls) {
    if (entry.correlation != 12) continue;
    const uint32_t stream = process.call_descriptors[entry.descriptor].stream;
    ASSERT_NE(stream, kNone);
    EXPECT_EQ(process.streams[stream].stream_id, 7u);
  }
}

TEST(Kineto, RankDevicesAndVersions) {
  const Imported got = import(object(
      kernel(1, "1", "1"),
      R"("deviceProperties":[{"id":0,"name":"NVIDIA H100","numSms":132,"totalGlobalMem":85}],)"
      R"("cupti_version":28,"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},)"));
  ASSERT_TRUE(got.done);
  const Process& process = got.process();
  EXPECT_TRUE(process.header.process().has_rank());
  EXPECT_EQ(process.header.process().rank(), 3);
  EXPECT_EQ(process.header.process().world_size(), 8);
  EXPECT_EQ(process.devices[0].info.sm_count(), 132u);
  EXPECT_EQ(process.devices[0].info.name(), "NVIDIA H100");
  EXPECT_EQ(process.windows[0].begin.cupti_version(), 28u);
  const Imported named = import(object(kernel(1, "1", "1")), "/x/node7_4711.1699.pt.trace.json");
  EXPECT_EQ(named.process().header.process().host(), "node7");
  const Imported by_name = import(object(kernel(1, "1", "1")), "/x/rank-12.json");
  EXPECT_EQ(by_name.process().header.process().rank(), 12);
}

TEST(Kineto, CollectivesOfKernelRows) {
  const std::string nccl =
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":9,"ts":50,)"
      R"("dur":10,"args":{"stream":9,"correlation":3,"Collective name":"allreduce",)"
      R"("In msg nelems":100,"Out msg nelems":100,"Group size":8,"dtype":"BFloat16",)"
      R"("Process Group Name":"0","Process Group Ranks":"[0, 1]"}})";
  const Imported got = import(object(kernel(1, "1", "1") + "," + nccl));
  ASSERT_EQ(got.process().collectives.size(), 1u);
  const Collective& collective = got.process().collectives[0];
  EXPECT_EQ(collective.bytes, 200u);
  EXPECT_EQ(collective.ranks, 8u);
  EXPECT_EQ(collective.correlation, 3u);
  EXPECT_EQ(got.recording.strings[collective.name], "allreduce");
}

// Tools that filter or merge profiles write a begin and an end for each row.
TEST(Kineto, BeginsAndEndsAreJoined) {
  const auto pair = [](const std::string& row, const std::string& end) {
    std::string begin = row;
    begin.replace(begin.find("\"X\""), 3, "\"B\"");
    const size_t dur = begin.find(",\"dur\":");
    begin.erase(dur, begin.find(',', dur + 1) - dur);
    return begin + R"(,{"ph":"E","pid":)" + (row.find("\"kernel\"") != row.npos ? "0" : "9") +
           R"(,"tid":)" + (row.find("\"kernel\"") != row.npos ? "7" : "9") + R"(,"ts":)" + end +
           "}";
  };
  const Imported got = import(
      object(R"({"ph":"B","cat":"cpu_op","name":"outer","pid":9,"tid":9,"ts":90},)" +
             pair(call(5, "100", "1"), "110.5") + "," + pair(kernel(5, "120", "1"), "150") + "," +
             R"({"ph":"E","pid":9,"tid":9,"ts":160},{"ph":"E","pid":9,"tid":9,"ts":170})"));
  ASSERT_TRUE(got.done) << got.done.error().text();
  ASSERT_EQ(got.process().ops.size(), 1u);
  EXPECT_EQ(got.process().ops[0].end_ns, 150'000);
  EXPECT_EQ(got.process().ops[0].call, 0u);
  EXPECT_EQ(got.process().calls[0].end_ns, 110'500);
  ASSERT_EQ(got.process().host_events.size(), 1u);
  EXPECT_EQ(got.process().host_events[0].end_ns, 160'000);
  EXPECT_EQ(got.anomaly(messages::kImportUnpaired), 1u);
}

TEST(Kineto, TimesInStringsListsOfCategoriesAndRowsWithoutPhase) {
  std::string in_strings = kernel(5, "\"120\"", "\"30.25\"");
  in_strings.erase(in_strings.find("\"ph\":\"X\","), 9);
  std::string two = call(5, "100", "10");
  two.replace(two.find("cuda_runtime"), 12, "cuda_runtime,gpu");
  const Imported got = import(object(two + "," + in_strings));
  ASSERT_TRUE(got.done) << got.done.error().text();
  ASSERT_EQ(got.process().ops.size(), 1u);
  EXPECT_EQ(got.process().ops[0].end_ns, 150'250);
  EXPECT_EQ(got.process().ops[0].call, 0u);
}

// PyTorch without Kineto (Debian's, 2023) writes the dialect of 2019 with steps and loaders in it.
TEST(Kineto, StepsAndLoadersOfTheOldDialect) {
  const auto row = [](const char* name, int begin, int dur) {
    return fmt::format(
        R"({{"name":"{}","ph":"X","ts":{},"dur":{},"tid":1,"pid":"CPU functions","args":{{}}}})",
        name, begin, dur);
  };
  const Imported got =
      import("[" + row("ProfilerStep#0", 10, 100) + "," +
             row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 11, 30) + "," +
             row("aten::add", 50, 3) + "," + row("Optimizer.step#SGD.step", 90, 10) + "]");
  ASSERT_TRUE(got.done) << got.done.error().text();
  std::map<int, int> kinds;
  for (const HostEvent& event : got.process().host_events) ++kinds[event.kind];
  EXPECT_EQ(kinds[trace::EVENT_STEP], 3);  // begin and end of the step, the optimizer's
  EXPECT_EQ(kinds[trace::EVENT_LOADER_NEXT], 1);
  EXPECT_EQ(kinds[trace::EVENT_RANGE], 3);
}

TEST(Kineto, BaseTimeOfAbsoluteStampsIsNotAdded) {
  const Imported got = import(object(kernel(1, "1712195495505543", "1"), "",
                                     R"(,"baseTimeNanoseconds":1735632360000000000)"));
  EXPECT_EQ(got.process().ops[0].begin_ns, 1712195495505543000);
}

TEST(CallClass, NamesOfCudaAndHip) {
  EXPECT_EQ(classify_call("cudaLaunchKernelExC_v11060").call_class, trace::CALL_LAUNCH);
  EXPECT_EQ(classify_call("cuLaunchKernelEx").call_class, trace::CALL_LAUNCH);
  EXPECT_TRUE(classify_call("cuLaunchKernelEx").driver);
  EXPECT_FALSE(classify_call("cudaLaunchKernel").driver);
  EXPECT_EQ(classify_call("hipExtModuleLaunchKernel").call_class, trace::CALL_LAUNCH);
  EXPECT_EQ(classify_call("cudaGraphLaunch_v10000").call_class, trace::CALL_GRAPH_LAUNCH);
  EXPECT_EQ(classify_call("cudaGraphInstantiateWithFlags").call_class,
            trace::CALL_GRAPH_INSTANTIATE);
  EXPECT_EQ(classify_call("cudaMemcpyAsync").call_class, trace::CALL_MEMCPY);
  EXPECT_EQ(classify_call("cuMemcpyHtoDAsync_v2").copy_kind, trace::COPY_H2D);
  EXPECT_EQ(classify_call("cudaMallocHost").call_class, trace::CALL_ALLOC_PINNED);
  EXPECT_EQ(classify_call("cudaMallocAsync").call_class, trace::CALL_ALLOC_DEVICE);
  EXPECT_EQ(classify_call("cudaHostAlloc").call_class, trace::CALL_ALLOC_PINNED);
  EXPECT_EQ(classify_call("cudaFree").call_class, trace::CALL_FREE_DEVICE);
  EXPECT_EQ(classify_call("cudaFreeHost").call_class, trace::CALL_FREE_PINNED);
  EXPECT_EQ(classify_call("cudaStreamSynchronize").call_class, trace::CALL_STREAM_SYNC);
  EXPECT_EQ(classify_call("hipDeviceSynchronize").call_class, trace::CALL_DEVICE_SYNC);
  EXPECT_EQ(classify_call("cuCtxSynchronize").call_class, trace::CALL_DEVICE_SYNC);
  EXPECT_EQ(classify_call("cudaEventQuery").call_class, trace::CALL_QUERY);
  EXPECT_EQ(classify_call("cudaStreamIsCapturing").call_class, trace::CALL_QUERY);
  EXPECT_EQ(classify_call("cudaStreamWaitEvent").call_class, trace::CALL_STREAM_WAIT_EVENT);
  EXPECT_EQ(classify_call("cudaEventRecordWithFlags").call_class, trace::CALL_EVENT_RECORD);
  EXPECT_EQ(classify_call("cuModuleLoadData").call_class, trace::CALL_MODULE_LOAD);
  EXPECT_EQ(classify_call("cuLibraryLoadData").call_class, trace::CALL_MODULE_LOAD);
  EXPECT_EQ(classify_call("INVALID").call_class, trace::CALL_OTHER);
}

}  // namespace
}  // namespace idlescope::read
