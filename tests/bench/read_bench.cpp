// Reading speed: a native trace of 10 million records, and a PyTorch profile of 256 MB.
//
// Both inputs are made here and are regular: real files are slower by what their names and
// disorder cost (docs/performance.md has both).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "analysis/read/kineto_json.h"
#include "analysis/read/recording.h"
#include "analysis/read/trace_reader.h"
#include "proto/trace.pb.h"

namespace {

using namespace idlescope;

constexpr int kBatch = 4096;

// Launches every 9 µs on one thread, each with a driver call inside every second one, kernels
// in batches that come a little out of order, as CUPTI hands them over.
std::string native_trace(int64_t launches) {
  std::string bytes;
  trace::Trace head;
  head.add_packet()->mutable_header()->set_format_major(1);
  trace::WindowBegin* window = head.add_packet()->mutable_window_begin();
  window->set_window_id(1);
  trace::DescriptorTable* table = head.add_packet()->mutable_descriptors();
  for (uint32_t id = 1; id <= 200; ++id) {
    table->add_gpu_op()->set_id(id);
    table->mutable_gpu_op(static_cast<int>(id) - 1)->set_stream_id(7 + id % 2);
    table->add_host_call()->set_id(id);
    table->mutable_host_call(static_cast<int>(id) - 1)->set_thread_id(100);
  }
  bytes = head.SerializeAsString();
  trace::Trace part;
  for (int64_t first = 0; first < launches; first += kBatch) {
    part.Clear();
    trace::GpuOpBatch* ops = part.add_packet()->mutable_gpu_ops();
    trace::HostCallBatch* calls = part.add_packet()->mutable_host_calls();
    ops->set_window_id(1);
    calls->set_window_id(1);
    ops->set_base_ns(first * 9000);
    calls->set_base_ns(first * 9000);
    for (int64_t i = 0; i < kBatch; ++i) {
      const uint32_t descriptor = static_cast<uint32_t>((first + i) % 200) + 1;
      const bool swapped = i % 64 == 1;  // two streams: delivered out of order
      ops->add_descriptor_id(descriptor);
      ops->add_begin_delta_ns(i == 0 ? 6000 : swapped ? 21'000 : i % 64 == 2 ? -3000 : 9000);
      ops->add_duration_ns(5000 + static_cast<uint64_t>(i % 700));
      ops->add_correlation_delta(i == 0 ? static_cast<int32_t>(first + 1) : 1);
      calls->add_descriptor_id(descriptor);
      calls->add_begin_delta_ns(i == 0 ? 0 : 9000);
      calls->add_duration_ns(4000 + static_cast<uint64_t>(i % 300));
      calls->add_correlation_delta(i == 0 ? static_cast<int32_t>(first + 1) : 1);
    }
    bytes += part.SerializeAsString();
  }
  return bytes;
}

void BM_ReadNative(benchmark::State& state) {
  const std::string bytes = native_trace(state.range(0) / 2);
  for (auto _ : state) {
    read::Recording recording;
    const auto done = read::read_trace(bytes, "bench", recording);
    if (!done || recording.processes[0].ops.empty()) state.SkipWithError("not read");
    benchmark::DoNotOptimize(recording);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_ReadNative)
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// As Kineto prints: several lines an event, arguments that the importer skips.
std::string kineto_json(size_t at_least) {
  std::string text = R"({"schemaVersion":1,"traceEvents":[{}])";
  text.pop_back();
  for (int64_t i = 1; text.size() < at_least; ++i) {
    const int64_t ts = 1'700'000'000'000'000 + i * 40;
    text += fmt::format(
        ",\n  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 9, "
        "\"tid\": 9,\n    \"ts\": {}.125, \"dur\": 30.5,\n    \"args\": {{\n      \"External id\": "
        "{}, "
        "\"Concrete Inputs\": [\"\", \"\", \"1\"], \"Input type\": [\"float\", \"float\", "
        "\"Scalar\"], "
        "\"Input Dims\": [[64, 256, 14, 14], [64, 256, 14, 14], []]\n    }}\n  }}",
        ts, i);
    text += fmt::format(
        ",\n  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
        "\"pid\": 9, \"tid\": 9,\n    \"ts\": {0}.500, \"dur\": 6.125,\n    \"args\": {{\n      "
        "\"External id\": {1}, \"cbid\": 211, \"correlation\": {1}\n    }}\n  }},\n  {{\n    "
        "\"ph\": \"s\", \"id\": {1}, \"pid\": 9, \"tid\": 9, \"ts\": {0}.500,\n    \"cat\": "
        "\"ac2g\", "
        "\"name\": \"ac2g\"\n  }}",
        ts + 1, i);
    text += fmt::format(
        ",\n  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
        "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*, 3>)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {0}.000, "
        "\"dur\": 9.750,\n    \"args\": {{\n      \"External id\": {1}, \"queued\": 0, \"device\": "
        "0, "
        "\"context\": 1,\n      \"stream\": 7, \"correlation\": {1},\n      \"registers per "
        "thread\": "
        "32, \"shared memory\": 0, \"blocks per SM\": 58.07, \"warps per SM\": 232.2,\n      "
        "\"grid\": [6272, 1, 1], \"block\": [128, 1, 1], \"est. achieved occupancy %\": 100\n    "
        "}}\n"
        "  }}",
        ts + 20, i);
  }
  return text + "]}";
}

void BM_ImportKineto(benchmark::State& state) {
  const std::string text = kineto_json(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    read::Recording recording;
    const auto done = read::import_kineto(text, "bench.json", recording);
    if (!done) state.SkipWithError("not read");
    benchmark::DoNotOptimize(recording);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(BM_ImportKineto)->Arg(256 << 20)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
