// Writes the seeds of the fuzzers: small inputs of each reader, whole and cut short.
//
// In: a directory, then text-proto traces (the golden cases). Out: DIR/trace, DIR/kineto and
// DIR/nsys. Built inputs, so that the repository holds no binary files.
#include <sqlite3.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "analysis/read/text_trace.h"
#include "tests/unit/read/build_trace.h"

namespace {

namespace fs = std::filesystem;
using namespace idlescope;

void write_seed(const fs::path& directory, const std::string& name, const std::string& bytes) {
  fs::create_directories(directory);
  for (const size_t part : {8, 5, 2}) {
    std::ofstream(directory / (name + "-" + std::to_string(part)), std::ios::binary)
        << bytes.substr(0, bytes.size() * part / 8);
  }
}

std::string small_trace() {
  test::TraceBuilder trace;
  trace.window(1, 0, 10'000);
  const uint32_t kernel = trace.op_descriptor(trace::OP_KERNEL, "gemm");
  const uint32_t launch = trace.call_descriptor(trace::CALL_LAUNCH, "cudaLaunchKernel");
  for (uint32_t i = 1; i < 6; ++i) {
    trace.call(launch, i * 100, i * 100 + 10, i);
    trace.op(kernel, i * 100 + 20, i * 100 + 90, i);
  }
  // The same in the other form of the format.
  trace::GpuOpBatch* ops = trace.packet()->mutable_gpu_ops();
  trace::HostCallBatch* calls = trace.packet()->mutable_host_calls();
  trace::OverheadBatch* overheads = trace.packet()->mutable_overheads();
  ops->set_window_id(1);
  calls->set_window_id(1);
  overheads->set_window_id(1);
  ops->set_base_ns(1000);
  calls->set_base_ns(1000);
  overheads->set_base_ns(1000);
  for (int32_t i = 0; i < 5; ++i) {
    ops->add_descriptor_id(kernel);
    ops->add_gap_change_ns(i == 0 ? 100 : 2 - i);
    ops->add_duration_change_ns(i == 0 ? 70 : i);
    ops->add_correlation_delta(i == 0 ? 10 : 1);
    calls->add_descriptor_id(launch);
    calls->add_gap_change_ns(i == 0 ? 20 : i);
    calls->add_duration_change_ns(i == 0 ? 10 : -1);
    calls->add_correlation_delta(i == 0 ? 10 : 1);
    overheads->add_kind(trace::OVERHEAD_COMMAND_BUFFER_FULL);
    overheads->add_thread_id(7);
    overheads->add_gap_ns(30);
    overheads->add_duration_ns(5);
    overheads->add_correlation_delta(10);
  }
  trace.event(trace::EVENT_LOADER_NEXT, 5, 9)->set_batch(0);
  trace::HostChunk* chunk = trace.packet()->mutable_host_chunk();
  chunk->set_record_bytes(64);
  std::string records(256, '\0');
  records[0] = trace::EVENT_GC;
  chunk->set_raw_events(records);
  return trace.bytes();
}

constexpr const char* kKineto = R"json(
{
  "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "numSms": 80}],
  "distributedInfo": {"rank": 1, "world_size": 2},
  "traceEvents": [
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
   "ts": 1712195495505543.2, "dur": 41.768, "args": {"cbid": 211, "correlation": 5}},
  {"ph": "X", "cat": "kernel", "name": "gemm<int>", "pid": 0, "tid": 7, "ts": 1712195495505583.0,
   "dur": 3, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 5,
   "grid": [1, 2, 3], "block": [4, 5, 6]}},
  {"ph": "s", "id": 5, "pid": 9, "tid": "9", "ts": 1, "cat": "ac2g", "name": "ac2g"},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add \"x\"", "pid": 9, "tid": "9", "ts": 1, "dur": 2},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 9, "tid": 9,
   "ts": 1, "dur": 1e3, "args": {}},
  {"name": "process_name", "ph": "M", "ts": 1, "pid": 9, "tid": 0, "args": {"name": "python"}}
  ], "baseTimeNanoseconds": 1735632360000000000
}
)json";

constexpr const char* kNsys =
    "CREATE TABLE StringIds(id INTEGER, value TEXT);"
    "INSERT INTO StringIds VALUES(1,'gemm'),(2,'cudaLaunchKernel_v7000');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT,"
    "streamId INT, correlationId INT, globalPid INT, demangledName INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT,"
    "correlationId INT, nameId INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,110,(5<<24)|5,42,2);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(120,150,0,1,7,42,5<<24,1);"
    "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, globalTid INT, text TEXT);"
    "INSERT INTO NVTX_EVENTS VALUES(10,90,59,(5<<24)|5,'step 7');";

std::string small_database() {
  sqlite3* handle = nullptr;
  sqlite3_open(":memory:", &handle);
  sqlite3_exec(handle, kNsys, nullptr, nullptr, nullptr);
  sqlite3_int64 size = 0;
  unsigned char* data = sqlite3_serialize(handle, "main", &size, 0);
  std::string bytes(reinterpret_cast<char*>(data), static_cast<size_t>(size));
  sqlite3_free(data);
  sqlite3_close(handle);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const fs::path directory = argv[1];
  write_seed(directory / "trace", "small", small_trace());
  write_seed(directory / "kineto", "small", kKineto);
  write_seed(directory / "kineto", "array", "[" + std::string(kKineto).substr(1) + "]");
  write_seed(directory / "nsys", "small", small_database());
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto serialized = read::serialize_text_trace(text, argv[i]);
    if (!serialized) {
      std::fprintf(stderr, "%s\n", serialized.error().text().c_str());
      return 1;
    }
    write_seed(directory / "trace", "golden" + std::to_string(i), *serialized);
  }
  return 0;
}
