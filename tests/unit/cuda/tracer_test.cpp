// The tracer against a CUPTI that answers as scripted (tests/fake_cupti).
#include "profiler/cuda/tracer.h"

#include <atomic>
#include <memory>
#include <set>
#include <thread>

#include "profiler/cuda/activity_buffers.h"
#include "profiler/cuda/call_log.h"
#include "tests/fake_cupti/fake_cupti.h"
#include "tests/unit/cuda/recorded_packets.h"

namespace idlescope::cuda {
namespace {

constexpr int64_t kMs = 1'000'000;

class TracerTest : public WithPackets {
 protected:
  void SetUp() override {
    WithPackets::SetUp();
    fake_cupti::reset();
    set_cupti_for_test(&fake_cupti::table());
    tracer_ = std::make_unique<Tracer>(&record_packet, &record_name);
  }
  void TearDown() override {
    if (tracer_->attached()) detach();
    set_cupti_for_test(nullptr);
    WithPackets::TearDown();
  }
  AttachOutcome attach(uint32_t window = 1) {
    AttachRequest request = {};
    request.window_id = window;
    request.reason = "test";
    return tracer_->attach(request);
  }
  DetachOutcome detach(bool finalize = true, int64_t wait_ns = 20 * kMs) {
    DetachRequest request = {};
    request.finalize = finalize;
    request.wait_ns = wait_ns;
    request.reason = "test";
    return tracer_->detach(request);
  }
  std::unique_ptr<Tracer> tracer_;
};

// Every device op has a call of the same (window, correlation id).
void expect_joined(const RecordedPackets& packets) {
  std::set<std::pair<uint32_t, uint32_t>> calls;
  for (const CallRow& call : packets.calls()) calls.insert({call.window, call.correlation});
  for (const OpRow& op : packets.ops()) {
    if (calls.count({op.window, op.correlation}) != 0) continue;
    const auto next = calls.upper_bound({op.window, op.correlation});
    ADD_FAILURE() << "window " << op.window << " correlation " << op.correlation << ", next "
                  << (next == calls.end() ? 0 : next->first) << ":"
                  << (next == calls.end() ? 0 : next->second);
  }
}

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

TEST_F(TracerTest, CallInFlightAtTheEndIsKept) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  std::atomic<int> stage{0};
  std::thread launcher([&] {
    fake_cupti::enter_launch({.duration_ns = 100});
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    fake_cupti::leave_launch();
  });
  while (stage != 1) std::this_thread::yield();
  fake_cupti::advance_ns(kMs);
  std::thread leaver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stage = 2;
  });
  const DetachOutcome outcome = detach(true, 2000 * kMs);
  launcher.join();
  leaver.join();
  EXPECT_TRUE(outcome.finalized);
  ASSERT_EQ(packets_.calls().size(), 1u);
  expect_joined(packets_);
}

TEST_F(TracerTest, LaunchThatBeganBeforeTheAttachIsJoined) {
  std::atomic<int> stage{0};
  std::thread launcher([&] {
    const auto wait_for = [&](int wanted) {
      while (stage != wanted) std::this_thread::yield();
    };
    fake_cupti::launch_in_two_halves({.duration_ns = 100}, [&] {
      stage = 1;
      wait_for(2);
    });
    stage = 3;
  });
  while (stage != 1) std::this_thread::yield();
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  stage = 2;
  launcher.join();
  fake_cupti::advance_ns(kMs);
  detach();
  ASSERT_EQ(packets_.ops().size(), 1u);
  expect_joined(packets_);
  for (const CallRow& call : packets_.calls()) EXPECT_LE(call.begin_ns, call.end_ns);
}

TEST_F(TracerTest, CallThatNeverReturnsDoesNotHoldTheDetach) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  std::atomic<int> stage{0};
  std::thread launcher([&] {
    fake_cupti::enter_launch({});
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    fake_cupti::leave_launch();
  });
  while (stage != 1) std::this_thread::yield();
  fake_cupti::advance_ns(kMs);
  const DetachOutcome outcome = detach(true, 30 * kMs);
  EXPECT_TRUE(outcome.finalized);
  EXPECT_LT(outcome.detach_ns, 1000 * kMs);
  stage = 2;
  launcher.join();
  // The late exit finds no window and must not write.
  ASSERT_EQ(attach(2).status, AttachStatus::kAttached);
  detach();
  EXPECT_TRUE(packets_.calls().empty());
}

TEST_F(TracerTest, GraphLaunchDuringDetachKeepsUsAttached) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch_graph({.duration_ns = 1000, .graph_id = 4, .graph_nodes = 20});
  fake_cupti::advance_ns(kMs);
  DetachRequest request = {};
  request.finalize = true;
  request.device_idle_first = true;
  request.wait_ns = 500 * kMs;
  // A kernel that is not finished keeps the detach waiting; meanwhile a graph is launched.
  fake_cupti::launch({.duration_ns = int64_t{3600} * 1'000'000'000});
  std::thread launcher([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    fake_cupti::launch_graph({.duration_ns = 1000, .graph_id = 4, .graph_nodes = 20});
  });
  const DetachOutcome outcome = tracer_->detach(request);
  launcher.join();
  EXPECT_FALSE(outcome.finalized);
  EXPECT_TRUE(fake_cupti::attached());
  EXPECT_TRUE(packets_.of(trace::Packet::kWindowEnd)[0].window_end().stayed_attached());
  // The next window needs no second subscribe.
  ASSERT_EQ(attach(2).status, AttachStatus::kAttached);
  EXPECT_EQ(fake_cupti::calls("Subscribe"), 1u);
  EXPECT_TRUE(detach().finalized);
}

TEST_F(TracerTest, GraphNodesCarryTheirIds) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  const uint32_t launch = fake_cupti::launch_graph(
      {.name = "node", .duration_ns = 10, .graph_id = 9, .graph_nodes = 3});
  fake_cupti::advance_ns(kMs);
  detach();
  const std::vector<OpRow> ops = packets_.ops();
  ASSERT_EQ(ops.size(), 3u);
  for (const OpRow& op : ops) {
    EXPECT_EQ(op.correlation, launch);
    EXPECT_EQ(op.what.graph_id(), 9u);
    EXPECT_NE(op.what.graph_node_id(), 0u);
  }
  ASSERT_EQ(packets_.calls().size(), 1u);
  EXPECT_EQ(packets_.calls()[0].what.call_class(), trace::CALL_GRAPH_LAUNCH);
  EXPECT_EQ(packets_.calls()[0].what.object(), 0x1009u);
}

TEST_F(TracerTest, CapturesAreSeenOnceThoughTwoDomainsReport) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  const uint32_t before = graph_sightings().captures_open;
  fake_cupti::begin_capture(4);
  EXPECT_EQ(graph_sightings().captures_open, before + 1);
  fake_cupti::end_capture(4);
  EXPECT_EQ(graph_sightings().captures_open, before);
}

struct Failure {
  const char* function;
  CUptiResult result;
  AttachStatus status;
};
class AttachFailure : public TracerTest, public ::testing::WithParamInterface<Failure> {};

TEST_P(AttachFailure, IsReportedAndUndone) {
  const Failure& failure = GetParam();
  fake_cupti::fail(failure.function, failure.result);
  const AttachOutcome outcome = attach();
  EXPECT_EQ(outcome.status, failure.status) << failure.function;
  EXPECT_EQ(outcome.result, failure.result);
  EXPECT_FALSE(tracer_->attached());
  EXPECT_FALSE(fake_cupti::attached());
  fake_cupti::launch();  // the job goes on
  EXPECT_TRUE(packets_.packets.empty());
  // And a later attempt works.
  fake_cupti::fail(failure.function, CUPTI_SUCCESS, 0);
  EXPECT_EQ(attach(2).status, AttachStatus::kAttached);
}

INSTANTIATE_TEST_SUITE_P(
    EveryCall, AttachFailure,
    ::testing::Values(
        Failure{"Subscribe", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, AttachStatus::kTaken},
        Failure{"Subscribe", CUPTI_ERROR_UNKNOWN, AttachStatus::kFailed},
        Failure{"Subscribe", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, AttachStatus::kPermission},
        Failure{"EnableCallback", CUPTI_ERROR_NOT_INITIALIZED, AttachStatus::kFailed},
        Failure{"ActivityRegisterCallbacks", CUPTI_ERROR_UNKNOWN, AttachStatus::kFailed},
        Failure{"ActivityEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, AttachStatus::kPermission},
        Failure{"ActivityEnable", CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
                AttachStatus::kPermission},
        Failure{"ActivityEnable", CUPTI_ERROR_NOT_COMPATIBLE, AttachStatus::kFailed}),
    [](const auto& one) {
      return std::string(one.param.function) + "_" + std::to_string(one.param.result);
    });

TEST_F(TracerTest, NeverFinalizesWhatAnotherToolHolds) {
  fake_cupti::hold_by_other_tool("CUPTI for Kineto");
  const AttachOutcome outcome = attach();
  EXPECT_EQ(outcome.status, AttachStatus::kTaken);
  EXPECT_STREQ(outcome.holder, "CUPTI for Kineto");
  EXPECT_EQ(fake_cupti::calls("Finalize"), 0u);
  fake_cupti::hold_by_other_tool("");
  EXPECT_EQ(attach().status, AttachStatus::kAttached);
}

TEST_F(TracerTest, DetachSurvivesEveryFailure) {
  for (const char* function :
       {"ActivityDisable", "ActivityFlushAll", "ActivityGetNumDroppedRecords", "Finalize",
        "ActivityGetNextRecord"}) {
    fake_cupti::reset();
    ASSERT_EQ(attach().status, AttachStatus::kAttached) << function;
    fake_cupti::launch();
    fake_cupti::advance_ns(kMs);
    fake_cupti::fail(function, CUPTI_ERROR_NOT_INITIALIZED);
    const DetachOutcome outcome = detach();
    EXPECT_FALSE(tracer_->attached()) << function;
    EXPECT_EQ(outcome.finalized, std::string(function) != "Finalize") << function;
    tracer_ = std::make_unique<Tracer>(&record_packet, &record_name);
    activity_buffers().forget_held();
  }
}

TEST_F(TracerTest, BrokenBufferIsALossOfItsOwn) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch();
  fake_cupti::advance_ns(kMs);
  fake_cupti::fail("ActivityGetNextRecord", CUPTI_ERROR_INVALID_KIND, 1);
  detach();
  EXPECT_EQ(packets_.lost(trace::LOSS_BUFFER), 1u);
}

TEST_F(TracerTest, FileThatTakesNothingIsCounted) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch();
  fake_cupti::advance_ns(kMs);
  tracer_->collect(true);
  sink_works = false;
  tracer_->write();
  sink_works = true;
  fake_cupti::launch();
  fake_cupti::advance_ns(kMs);
  detach();
  EXPECT_EQ(packets_.lost(trace::LOSS_FILE), 2u) << "one op, one call";
  ASSERT_EQ(packets_.ops().size(), 1u) << "its descriptor is written again";
  expect_joined(packets_);
}

TEST_F(TracerTest, AtExitNothingIsFinalized) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch();
  fake_cupti::advance_ns(kMs);
  const DetachOutcome outcome = detach(false);
  EXPECT_FALSE(outcome.finalized);
  EXPECT_EQ(packets_.ops().size(), 1u);
  EXPECT_EQ(fake_cupti::calls("Finalize"), 0u);
}

class OldCupti : public TracerTest {};

TEST_F(OldCupti, Version12RecordsAreDecoded) {
  fake_cupti::reset(26);
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch({.name = "a", .duration_ns = 123});
  fake_cupti::launch({.name = "b", .duration_ns = 456});
  fake_cupti::copy({.duration_ns = 9, .bytes = 77});
  fake_cupti::advance_ns(kMs);
  detach();
  const std::vector<OpRow> ops = packets_.ops();
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(packets_.names[ops[1].what.name_id()], "b");
  EXPECT_EQ(ops[1].end_ns - ops[1].begin_ns, 456);
  EXPECT_EQ(ops[2].what.bytes(), 77u);
  expect_joined(packets_);
}

TEST_F(OldCupti, Version11IsRefused) {
  fake_cupti::reset(18);
  EXPECT_EQ(attach().status, AttachStatus::kNoLibrary);
  EXPECT_EQ(fake_cupti::calls("Subscribe"), 0u);
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
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&stop, i] {
      while (!stop) {
        fake_cupti::launch({.duration_ns = 10, .stream = i});
        std::this_thread::yield();
      }
    });
  }
  for (uint32_t window = 1; window <= 25; ++window) {
    ASSERT_EQ(attach(window).status, AttachStatus::kAttached);
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    tracer_->collect(true);
    ASSERT_TRUE(detach(true, 500 * kMs).finalized);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(packets_.ops().size(), 100u);
  EXPECT_EQ(packets_.of(trace::Packet::kWindowEnd).size(), 25u);
  expect_joined(packets_);
}

}  // namespace
}  // namespace idlescope::cuda
