// The Nsight Systems importer: schema versions, processes, edges, damage, foreign databases.
#include "analysis/read/nsys_sqlite.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/read/recording.h"
#include "proto/messages.h"
#include "tests/unit/read/describe.h"

namespace idlescope::read {
namespace {

std::string database(const std::string& sql) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &handle), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << (error != nullptr ? error : "");
  sqlite3_int64 size = 0;
  unsigned char* data = sqlite3_serialize(handle, "main", &size, 0);
  std::string bytes(reinterpret_cast<char*>(data), static_cast<size_t>(size));
  sqlite3_free(data);
  sqlite3_close(handle);
  return bytes;
}

struct Imported {
  Recording recording;
  Expected<void> done;
};

Imported import(const std::string& bytes) {
  Imported result;
  result.done = import_nsys(bytes, "x.sqlite", result.recording);
  for (const Process& process : result.recording.processes) {
    EXPECT_EQ(test::broken_invariant(process), "");
  }
  return result;
}

// pid 5 and pid 6; thread ids equal the pids. Global ids are pid << 24 | tid.
constexpr const char* kStrings =
    "CREATE TABLE StringIds(id INTEGER, value TEXT);"
    "INSERT INTO StringIds VALUES(1,'gemm'),(2,'cudaLaunchKernel_v7000'),"
    "(3,'cudaStreamSynchronize_v3020'),(4,'cudaGraphLaunch_v10000'),"
    "(5,'cudaEventRecord_v3020'),(6,'cudaStreamWaitEvent_v3020'),(7,'a' || char(0) || 'b');";
constexpr const char* kKernels =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT,"
    "streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT,"
    "registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT,"
    "staticSharedMemory INT, dynamicSharedMemory INT, graphNodeId INT);";
constexpr const char* kRuntime =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, eventClass INT, globalTid INT,"
    "correlationId INT, nameId INT);";

std::string base() { return std::string(kStrings) + kKernels + kRuntime; }

constexpr const char* kOneKernel =
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,110,0,(5<<24)|5,42,2);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(120,150,0,1,7,42,5<<24,1,1,32,4,1,1,256,1,1,8,"
    "16,NULL);";

TEST(Nsys, KernelsMeetTheirLaunch) {
  const Imported got = import(database(base() + kOneKernel));
  ASSERT_TRUE(got.done) << got.done.error().text();
  ASSERT_EQ(got.recording.processes.size(), 1u);
  const Process& process = got.recording.processes[0];
  EXPECT_EQ(process.header.process().pid(), 5);
  ASSERT_EQ(process.ops.size(), 1u);
  EXPECT_EQ(process.ops[0].begin_ns, 120);
  EXPECT_EQ(process.ops[0].call, 0u);
  const OpDescriptor& op = process.op_descriptors[0];
  EXPECT_EQ(got.recording.strings[op.name], "gemm");
  EXPECT_EQ(op.grid[0], 4u);
  EXPECT_EQ(op.shared_bytes, 24u);
  EXPECT_EQ(process.call_descriptors[0].call_class, trace::CALL_LAUNCH);
  EXPECT_EQ(process.call_descriptors[0].thread_id, 5u);
  EXPECT_EQ(got.recording.origin, Origin::kNsys);
  EXPECT_TRUE(process.windows[0].records(trace::KIND_KERNEL));
  EXPECT_FALSE(process.windows[0].records(trace::KIND_MEMCPY));
  EXPECT_FALSE(process.windows[0].records(trace::KIND_NVTX));
}

uint64_t anomaly(const Imported& got, const messages::Message& message) {
  uint64_t count = 0;
  for (const Anomaly& entry : got.recording.anomalies) {
    if (entry.message.id == message.id) count += entry.count;
  }
  return count;
}

// A missing time read as 0 makes a kernel that runs from the start of the session.
TEST(Nsys, RowsWithoutTimesAreLeftOut) {
  const Imported got = import(database(
      base() + kOneKernel +
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end, globalPid) VALUES(NULL,500,5<<24);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end, globalPid) VALUES('abc',500,5<<24);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(NULL,90,0,(5<<24)|5,43,2);"));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.recording.processes[0].ops.size(), 1u);
  EXPECT_EQ(got.recording.processes[0].calls.size(), 1u);
  EXPECT_EQ(anomaly(got, messages::kImportBadNumbers), 3u);
  const Imported no_start = import(database(base() + kOneKernel +
                                            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN "
                                            "start TO begin;"));
  ASSERT_TRUE(no_start.done);
  EXPECT_TRUE(no_start.recording.processes[0].ops.empty());
}

TEST(Nsys, CallsWithoutNamesAreNoEvidence) {
  const Imported got = import(database(base() + kOneKernel + "DROP TABLE StringIds;"));
  ASSERT_TRUE(got.done);
  EXPECT_TRUE(got.recording.processes[0].calls.empty());
  EXPECT_FALSE(got.recording.processes[0].windows[0].records(trace::KIND_CALL_SYNC));
  EXPECT_EQ(anomaly(got, messages::kNsysNoNames), 1u);
}

TEST(Nsys, ADatabaseThatWasOpenIsRead) {
  std::string bytes = database(base() + kOneKernel);
  bytes[18] = bytes[19] = 2;  // write-ahead log
  const Imported got = import(bytes);
  ASSERT_TRUE(got.done) << got.done.error().text();
  EXPECT_EQ(got.recording.processes[0].ops.size(), 1u);
  EXPECT_EQ(anomaly(got, messages::kNsysOpen), 1u);
}

// poll() on the thread that launches is no CPU time of it; other threads and ioctl do not count.
TEST(Nsys, SleepsOfTheLaunchingThreadStopItsCpuClock) {
  const Imported got = import(
      database(base() + kOneKernel +
               "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(10100,10110,0,(5<<24)|5,43,2);"
               "INSERT INTO StringIds VALUES(20,'poll'),(21,'ioctl'),(22,'read');"
               "CREATE TABLE OSRT_API(start INT, end INT, globalTid INT, nameId INT);"
               "INSERT INTO OSRT_API VALUES(1000,9000,(5<<24)|5,20),(2000,3000,(5<<24)|5,22),"
               "(9200,9900,(5<<24)|5,21),(500,9000,(5<<24)|77,20),(500,9000,(9<<24)|9,20);"));
  ASSERT_TRUE(got.done) << got.done.error().text();
  std::vector<std::pair<Ns, int64_t>> clock;
  for (const HostEvent& event : got.recording.processes[0].host_events) {
    ASSERT_EQ(event.kind, trace::EVENT_THREAD_CPU);
    EXPECT_EQ(event.thread_id, 5u);
    clock.emplace_back(event.begin_ns, event.a);
  }
  const std::vector<std::pair<Ns, int64_t>> expected = {
      {110, 0}, {1000, 890}, {9000, 890}, {10100, 1990}};
  EXPECT_EQ(clock, expected);
}

TEST(Nsys, OldSchemaWithoutManyColumns) {
  const Imported got = import(database(
      std::string(kStrings) +
      "CREATE TABLE ProcessStreams(x INT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT,"
      "streamId INT, correlationId INT, globalPid INT, shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,2,0,1,7,9,5<<24,1);"));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.recording.strings[got.recording.processes[0].op_descriptors[0].name], "gemm");
}

TEST(Nsys, EveryProcessIsOne) {
  const Imported got = import(database(
      base() + kOneKernel +
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,110,0,(6<<24)|6,42,2);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(130,160,1,1,7,42,6<<24,1,1,32,4,1,1,256,1,1,8,"
      "16,NULL);"));
  ASSERT_TRUE(got.done);
  ASSERT_EQ(got.recording.processes.size(), 2u);
  EXPECT_EQ(got.recording.processes[1].header.process().pid(), 6);
  EXPECT_EQ(got.recording.processes[1].ops[0].call, 0u);
  EXPECT_EQ(got.recording.processes[1].devices[0].info.device_id(), 1u);
}

TEST(Nsys, GraphRowsAreNotCountedBesideTheirNodes) {
  const std::string graphs =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT, deviceId INT,"
      "contextId INT, streamId INT, correlationId INT, globalPid INT, graphId INT,"
      "graphExecId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(1000,1100,0,1,7,50,5<<24,1,2);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(2000,2100,0,1,7,51,5<<24,1,2);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1010,1090,0,1,7,50,5<<24,1,1,32,4,1,1,256,1,1,"
      "0,0,77);";
  const Imported got = import(database(base() + graphs));
  ASSERT_TRUE(got.done);
  const Process& process = got.recording.processes[0];
  ASSERT_EQ(process.ops.size(), 2u);
  EXPECT_EQ(process.op_descriptors[process.ops[0].descriptor].kind, trace::OP_KERNEL);
  EXPECT_EQ(process.op_descriptors[process.ops[1].descriptor].kind, trace::OP_GRAPH);
}

TEST(Nsys, EventsAreJoinedBySyncIdAndStreamsBySyncRows) {
  const Imported got = import(database(
      base() + kOneKernel +
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(200,201,0,(5<<24)|5,60,5),"
      "(202,203,0,(5<<24)|5,61,6),(204,205,0,(5<<24)|5,62,3);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(globalPid INT, eventId INT, eventSyncId INT,"
      "correlationId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES(5<<24,1,900,60);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT, end INT, deviceId INT,"
      "contextId INT, streamId INT, correlationId INT, globalPid INT, syncType INT, eventId INT,"
      "eventSyncId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(202,203,0,1,20,61,5<<24,2,1,900),"
      "(204,205,0,1,7,62,5<<24,3,4294967295,4294967295);"));
  ASSERT_TRUE(got.done);
  const Process& process = got.recording.processes[0];
  ASSERT_EQ(process.event_edges.size(), 1u);
  EXPECT_EQ(process.calls[process.event_edges[0].record_call].correlation, 60u);
  EXPECT_EQ(process.calls[process.event_edges[0].wait_call].correlation, 61u);
  EXPECT_EQ(process.devices.size(), 1u);
  const uint32_t stream = process.call_descriptors[process.calls.back().descriptor].stream;
  ASSERT_NE(stream, kNone);
  EXPECT_EQ(process.streams[stream].stream_id, 7u);
}

TEST(Nsys, NvtxRangesStepsAndTorchOps) {
  const Imported got = import(database(
      base() + kOneKernel +
      "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, globalTid INT, text TEXT,"
      "textId INT);"
      "INSERT INTO NVTX_EVENTS VALUES(10,90,59,(5<<24)|5,'step 7',NULL),"
      "(90,170,59,(5<<24)|5,'step 8',NULL),"
      "(20,30,59,(5<<24)|5,'aten::to, op_id = 990347',NULL),(25,NULL,59,(5<<24)|5,'open',NULL),"
      "(26,27,59,(5<<24)|5,NULL,7),(28,NULL,34,(5<<24)|5,'mark',NULL),"
      "(11,19,59,(5<<24)|5,'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__',NULL),"
      "(1,2,59,(8<<24)|8,'other process',NULL);"));
  ASSERT_TRUE(got.done);
  ASSERT_EQ(got.recording.processes.size(), 1u);
  std::vector<int64_t> steps;
  int nexts = 0;
  bool torch_op = false;
  bool with_nul = false;
  for (const HostEvent& event : got.recording.processes[0].host_events) {
    if (event.kind == trace::EVENT_STEP) steps.push_back(event.b);
    nexts += event.kind == trace::EVENT_LOADER_NEXT ? 1 : 0;
    if (event.kind != trace::EVENT_RANGE) continue;
    const std::string& name = got.recording.strings[static_cast<uint32_t>(event.a)];
    torch_op |= name == "aten::to" && event.b == trace::RANGE_FRAMEWORK_OP && event.c == 1;
    with_nul |= name == std::string("a\0b", 3);
    EXPECT_NE(name, "open");
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{6, 7, 8}));
  EXPECT_EQ(nexts, 1);
  EXPECT_TRUE(torch_op);
  EXPECT_TRUE(with_nul);
}

TEST(Nsys, DatabasesThatAreNoExport) {
  const Imported other = import(database("CREATE TABLE users(id INT);"));
  ASSERT_FALSE(other.done);
  EXPECT_EQ(other.done.error().message.id, "foreign-file");
  const Imported no_cuda =
      import(database("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
                      "CREATE TABLE OSRT_API(start INT, end INT);"));
  ASSERT_FALSE(no_cuda.done);
  EXPECT_EQ(no_cuda.done.error().message.id, "nsys-no-cuda");
  const Imported cut = import(std::string("SQLite format 3\0", 16) + std::string(84, '\x01'));
  ASSERT_FALSE(cut.done);
  EXPECT_EQ(cut.done.error().message.id, "not-a-trace");
}

TEST(Nsys, ViewsAreNotRun) {
  const Imported got = import(database(
      base() + kOneKernel +
      "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM r)"
      " SELECT x AS start, x AS end, 59 AS eventType, (5<<24)|5 AS globalTid, 'x' AS text FROM "
      "r;"));
  ASSERT_TRUE(got.done);
  EXPECT_TRUE(got.recording.processes[0].host_events.empty());
}

TEST(NsysDamage, FlippedBytesNeverCrash) {
  std::string sql = base();
  for (int i = 0; i < 300; ++i) {
    const std::string n = std::to_string(i);
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(" + n + "00," + n + "10,0,(5<<24)|5," +
           n + ",2);INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(" + n + "20," + n + "50,0,1,7," +
           n + ",5<<24,1,1,32,4,1,1,256,1,1,8,16,NULL);";
  }
  const std::string bytes = database(sql);
  std::mt19937 random(3);
  int damaged_seen = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 20; ++flips) {
      damaged[16 + random() % (damaged.size() - 16)] = static_cast<char>(random());
    }
    if (round % 3 == 0) damaged.resize(damaged.size() / 2 + random() % 1000);
    const Imported got = import(damaged);
    damaged_seen += !got.done || !got.recording.anomalies.empty() ? 1 : 0;
  }
  EXPECT_GT(damaged_seen, 50);
}

}  // namespace
}  // namespace idlescope::read
