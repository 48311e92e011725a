// What one host event costs, written into the mapped file as in a job. The goal is 150 ns with
// both clock reads and no allocation (docs/overhead.md).
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/host/host_events.h"
#include "profiler/host/ranges.h"
#include "profiler/host/worker_clock.h"

namespace {

using idlescope::emit::monotonic_ns;
using idlescope::host::EventKind;

std::string& directory() {
  static std::string path;
  return path;
}

void write_span(benchmark::State& state) {
  const size_t before = mallinfo2().uordblks;
  for (auto _ : state) {
    const int64_t begin_ns = monotonic_ns();
    idlescope::host::write_event({.kind = EventKind::kLoaderWait,
                                  .begin_ns = begin_ns,
                                  .end_ns = monotonic_ns(),
                                  .iterator = 1,
                                  .batch = 7,
                                  .a = 1});
  }
  if (state.threads() == 1) {
    state.counters["heap_bytes"] = static_cast<double>(mallinfo2().uordblks - before);
  }
  if (!idlescope::emit::recording_possible()) state.SkipWithError("the recording ended");
}
// A fixed number: each event takes 64 bytes of disk.
BENCHMARK(write_span)->Iterations(1'000'000);
BENCHMARK(write_span)->Iterations(300'000)->Threads(2);

void write_range(benchmark::State& state) {
  for (auto _ : state) {
    idlescope::host::push_range(idlescope::host::RangeCategory::kNvtx, "forward", 7);
    idlescope::host::pop_range();
  }
}
BENCHMARK(write_range)->Iterations(500'000);

void fetch_reading(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(idlescope::host::read_fetch_counters());
  }
}
BENCHMARK(fetch_reading);

void fetch_clocks(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(idlescope::host::read_fetch_clocks());
  }
}
BENCHMARK(fetch_clocks);

void two_clock_reads(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(monotonic_ns());
    benchmark::DoNotOptimize(monotonic_ns());
  }
}
BENCHMARK(two_clock_reads);

void recording_off(benchmark::State& state) {
  idlescope::emit::stop_recording();
  for (auto _ : state) {
    idlescope::host::write_event({.kind = EventKind::kLoaderWait, .begin_ns = 1, .end_ns = 2});
  }
  idlescope::emit::resume_recording();
}
BENCHMARK(recording_off);

}  // namespace

int main(int argc, char** argv) {
  char pattern[] = "/tmp/idlescope_bench_XXXXXX";
  if (mkdtemp(pattern) == nullptr) return 1;
  directory() = pattern;
  strcpy(idlescope::emit::identity().host, "bench");
  idlescope::emit::configure_trace_file({pattern, 0, getenv("IDLESCOPE_BENCH_APPEND") != nullptr},
                                        nullptr);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(directory());
  return 0;
}
