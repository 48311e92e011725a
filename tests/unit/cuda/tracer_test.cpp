// What a window holds: kernels, copies, their calls, joined by value; several windows and threads.
#include <atomic>
#include <thread>

#include "profiler/cuda/activity_buffers.h"
#include "profiler/cuda/call_log.h"
#include "tests/unit/cuda/tracer_fixture.h"

namespace idlescope::cuda {
namespace {

TEST_F(TracerTest, RecordsKernelsCopiesAndTheirCallsByValue) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  const uint32_t kernel = fake_cupti::launch({.name = "gemm", .duration_ns = 5000, .stream = 3});
  const uint32_t copy = fake_cupti::copy({.duration_ns = 9000, .stream = 3, .bytes = 4096});
  const uint32_t set = fake_cupti::set_memory({.duration_ns = 700, .bytes = 64});
  fake_cupti::advance_ns(kMs);
  const DetachOutcome outcome = detach();
  EXPECT_TRUE(outcome.finalized);
  EXPECT_EQ(outcome.records, 3u);

  const std::vector<OpRow> ops = packets_.ops();
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].correlation, kernel);
  EXPECT_EQ(ops[0].what.kind(), trace::OP_KERNEL);
  EXPECT_EQ(packets_.names[ops[0].what.name_id()], "gemm");
  EXPECT_EQ(ops[0].end_ns - ops[0].begin_ns, 5000);
  EXPECT_EQ(ops[0].what.grid_x(), 128u);
  EXPECT_EQ(ops[0].what.block_x(), 256u);
  EXPECT_EQ(ops[0].what.registers_per_thread(), 32u);
  EXPECT_EQ(ops[0].what.dynamic_shared_bytes(), 1024u);
  EXPECT_EQ(ops[1].correlation, copy);
  EXPECT_EQ(ops[1].what.kind(), trace::OP_MEMCPY);
  EXPECT_EQ(ops[1].what.copy_kind(), trace::COPY_H2D);
  EXPECT_EQ(ops[1].what.src_kind(), trace::MEMORY_PINNED);
  EXPECT_EQ(ops[1].what.bytes(), 4096u);
  EXPECT_EQ(ops[2].correlation, set);
  EXPECT_EQ(ops[2].what.kind(), trace::OP_MEMSET);

  const std::vector<CallRow> calls = packets_.calls();
  ASSERT_EQ(calls.size(), 3u) << "the driver call inside repeats the outer one";
  EXPECT_EQ(calls[0].what.call_class(), trace::CALL_LAUNCH);
  EXPECT_EQ(calls[0].what.domain(), trace::HostCallDescriptor::DOMAIN_RUNTIME);
  EXPECT_EQ(packets_.names[calls[0].what.name_id()], "cudaLaunchKernel");
  EXPECT_EQ(calls[0].what.stream_handle(), 3u);
  EXPECT_EQ(calls[1].what.copy_kind(), trace::COPY_H2D);
  EXPECT_EQ(calls[1].what.bytes(), 4096u);
  EXPECT_LT(calls[0].begin_ns, calls[0].end_ns);
  expect_joined(packets_);
}

TEST_F(TracerTest, WindowSaysWhatItHolds) {
  ASSERT_EQ(attach(7).status, AttachStatus::kAttached);
  detach();
  const auto begins = packets_.of(trace::Packet::kWindowBegin);
  ASSERT_EQ(begins.size(), 1u);
  const trace::WindowBegin& begin = begins[0].window_begin();
  EXPECT_EQ(begin.window_id(), 7u);
  EXPECT_EQ(begin.cupti_version(), 130001u);
  EXPECT_EQ(begin.clock(), trace::WindowBegin::CLOCK_MONOTONIC_HOST);
  EXPECT_GT(begin.attach_ns(), 0);
  std::set<int> kinds(begin.kinds().begin(), begin.kinds().end());
  for (const int kind : {trace::KIND_KERNEL, trace::KIND_MEMCPY, trace::KIND_MEMSET,
                         trace::KIND_CALL_LAUNCH, trace::KIND_CALL_SYNC, trace::KIND_GRAPH_NODE}) {
    EXPECT_TRUE(kinds.count(kind)) << kind;
  }
  EXPECT_FALSE(kinds.count(trace::KIND_GRAPH_TRACE));
  const auto ends = packets_.of(trace::Packet::kWindowEnd);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_FALSE(ends[0].window_end().stayed_attached());
  EXPECT_GE(ends[0].window_end().end_ns(), begin.begin_ns());
}

TEST_F(TracerTest, OnlyLaunchCopyAndSyncKindsAreEnabled) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  EXPECT_TRUE(fake_cupti::kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  // Each of these makes every cheap CUDA call several times as long.
  EXPECT_FALSE(fake_cupti::kind_enabled(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_FALSE(fake_cupti::kind_enabled(CUPTI_ACTIVITY_KIND_DRIVER));
  EXPECT_FALSE(fake_cupti::kind_enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
  fake_cupti::query_stream(0);
  detach();
  EXPECT_TRUE(packets_.calls().empty());
}

TEST_F(TracerTest, CorrelationIdsRestartSoWindowsAreJoinedApart) {
  for (const uint32_t window : {1u, 2u, 3u}) {
    ASSERT_EQ(attach(window).status, AttachStatus::kAttached);
    for (uint32_t i = 0; i < window; ++i) fake_cupti::launch();
    fake_cupti::advance_ns(kMs);
    ASSERT_TRUE(detach().finalized);
  }
  const std::vector<OpRow> ops = packets_.ops();
  ASSERT_EQ(ops.size(), 6u);
  std::set<uint32_t> firsts;
  for (const OpRow& op : ops) {
    if (op.correlation == 1) firsts.insert(op.window);
  }
  EXPECT_EQ(firsts, (std::set<uint32_t>{1, 2, 3}));
  expect_joined(packets_);
}

TEST_F(TracerTest, DriverOnlyLaunchIsRecorded) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch({.driver_only = true});
  fake_cupti::advance_ns(kMs);
  detach();
  const std::vector<CallRow> calls = packets_.calls();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(packets_.names[calls[0].what.name_id()], "cuLaunchKernel");
  expect_joined(packets_);
}

TEST_F(TracerTest, FullDetailKeepsTheInnerCallToo) {
  AttachRequest request = {};
  request.window_id = 1;
  request.full_detail = true;
  ASSERT_EQ(tracer_->attach(request).status, AttachStatus::kAttached);
  fake_cupti::launch();
  detach();
  const std::vector<CallRow> calls = packets_.calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].correlation, calls[1].correlation);
  EXPECT_GE(calls[0].begin_ns, calls[1].begin_ns) << "the driver call is inside";
  EXPECT_LE(calls[0].end_ns, calls[1].end_ns);
}

TEST_F(TracerTest, UnfinishedKernelsAreCountedNotShown) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch({.duration_ns = 1000});
  fake_cupti::launch({.duration_ns = int64_t{3600} * 1'000'000'000});
  const DetachOutcome outcome = detach();
  EXPECT_EQ(outcome.records, 1u);
  EXPECT_EQ(packets_.ops().size(), 1u);
  EXPECT_EQ(packets_.lost(trace::LOSS_INCOMPLETE), 1u);
  EXPECT_EQ(packets_.of(trace::Packet::kLoss)[0].loss().kind(), trace::KIND_KERNEL);
}

TEST_F(TracerTest, DroppedRecordsAreInTheTrace) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::give_no_buffers(true);
  for (int i = 0; i < 5; ++i) fake_cupti::launch();
  fake_cupti::give_no_buffers(false);
  fake_cupti::launch();
  fake_cupti::advance_ns(kMs);
  detach();
  EXPECT_EQ(packets_.lost(trace::LOSS_CUPTI_DROPPED), 5u);
  EXPECT_EQ(packets_.ops().size(), 1u);
}

TEST_F(TracerTest, ManyBuffersKeepEveryRecord) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  constexpr int kLaunches = 20'000;  // about 17 buffers
  for (int i = 0; i < kLaunches; ++i) {
    fake_cupti::launch({.duration_ns = 500, .stream = static_cast<uint64_t>(i % 3)});
    if (i % 5000 == 0) tracer_->collect(true);
  }
  fake_cupti::advance_ns(100 * kMs);
  const DetachOutcome outcome = detach();
  EXPECT_EQ(outcome.records, static_cast<uint64_t>(kLaunches));
  EXPECT_EQ(packets_.ops().size(), static_cast<size_t>(kLaunches));
  EXPECT_TRUE(packets_.of(trace::Packet::kLoss).empty());
  EXPECT_EQ(activity_buffers().held(), 0u);
  expect_joined(packets_);
}

TEST_F(TracerTest, StreamsAreLearntFromJoinedRecords) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch({.stream = 5});
  fake_cupti::launch({.stream = 0});
  fake_cupti::launch({.stream = 5});
  fake_cupti::advance_ns(kMs);
  detach();
  const auto streams = packets_.of(trace::Packet::kStream);
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0].stream().handle(), 5u);
  EXPECT_EQ(streams[0].stream().stream_id(), 12u);
  EXPECT_EQ(streams[1].stream().handle(), 0u);
  const auto contexts = packets_.of(trace::Packet::kContext);
  ASSERT_EQ(contexts.size(), 2u);
  EXPECT_EQ(contexts[1].context().null_stream_id(), 7u);
}

TEST_F(TracerTest, OwnThreadIsNotPartOfTheJob) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  CallLog::mark_own_thread(true);
  fake_cupti::launch();
  CallLog::mark_own_thread(false);
  fake_cupti::launch();
  fake_cupti::advance_ns(kMs);
  detach();
  EXPECT_EQ(packets_.calls().size(), 1u);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IDLESCOPE_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IDLESCOPE_SANITIZED
#endif

TEST_F(TracerTest, ManyWindowsLeakNothing) {
#ifdef IDLESCOPE_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory grows";
#endif
  const auto resident_kb = [] {
    long total = 0;
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    EXPECT_EQ(fscanf(file, "%ld %ld", &total, &pages), 2);
    fclose(file);
    return pages * 4;
  };
  long before_kb = 0;
  for (uint32_t window = 1; window <= 600; ++window) {
    ASSERT_EQ(attach(window).status, AttachStatus::kAttached);
    for (int i = 0; i < 20; ++i) fake_cupti::launch({.duration_ns = 10});
    fake_cupti::advance_ns(kMs);
    ASSERT_TRUE(detach().finalized);
    packets_.packets.clear();
    if (window == 100) before_kb = resident_kb();
  }
  EXPECT_LT(resident_kb() - before_kb, 2048);
}

TEST_F(TracerTest, ManyThreadsManyWindows) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> launched{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&stop, &launched, i] {
      while (!stop) {
        fake_cupti::launch({.duration_ns = 10, .stream = i});
        ++launched;
        std::this_thread::yield();
      }
    });
  }
  for (uint32_t window = 1; window <= 25; ++window) {
    ASSERT_EQ(attach(window).status, AttachStatus::kAttached);
    // However busy the machine is: some launches in each window. Four may have begun before.
    const uint64_t enough = launched + 4 + 6;
    while (launched < enough) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    tracer_->collect(true);
    // Torn down, unless the threads were seen to launch at once (docs/decisions/018).
    const DetachOutcome outcome = detach(true, 500 * kMs);
    EXPECT_TRUE(outcome.finalized || outcome.threads_launch);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(packets_.ops().size(), 100u);
  EXPECT_EQ(packets_.of(trace::Packet::kWindowEnd).size(), 25u);
  expect_joined(packets_);
}

}  // namespace
}  // namespace idlescope::cuda
