// The edges of a window: calls under way at the attach and the detach, graphs, captures.
#include <atomic>
#include <thread>
#include <vector>

#include "profiler/cuda/clock.h"
#include "tests/unit/cuda/tracer_fixture.h"

namespace idlescope::cuda {
namespace {

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

TEST_F(TracerTest, WhoeverBringsTheThreadsToAHaltMayForbidTheFinalize) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  struct Asked {
    Halt answer;
    uint64_t asked;
    int stands_ms;  // of the 300 ms that the halt takes
  } halt = {Halt::kNever, 0, 0};
  DetachRequest request = {};
  request.finalize = true;
  request.before_finalize_data = &halt;
  request.before_finalize = [](void* data, int64_t* stood_since_ns) {
    auto* mine = static_cast<Asked*>(data);
    ++mine->asked;
    EXPECT_FALSE(fake_cupti::kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    std::this_thread::sleep_for(std::chrono::milliseconds(300 - mine->stands_ms));
    if (mine->stands_ms != 0) *stood_since_ns = monotonic_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(mine->stands_ms));
    return mine->answer;
  };
  EXPECT_FALSE(tracer_->detach(request).finalized);
  EXPECT_TRUE(fake_cupti::attached());
  ASSERT_EQ(attach(2).status, AttachStatus::kAttached);
  halt.answer = Halt::kStands;
  const DetachOutcome outcome = tracer_->detach(request);
  EXPECT_TRUE(outcome.finalized);
  EXPECT_EQ(halt.asked, 2u);
  EXPECT_LT(outcome.detach_ns, 200 * kMs) << "waiting for a step is no stall of the job";
  const trace::WindowEnd job_ran = packets_.of(trace::Packet::kWindowEnd).back().window_end();
  EXPECT_GE(job_ran.detach_wait_ns(), 300 * kMs);
  EXPECT_EQ(job_ran.detach_ns(), outcome.detach_ns);
  EXPECT_EQ(job_ran.stood_ns(), 0);

  // From where the thread stands, the time is ours.
  ASSERT_EQ(attach(3).status, AttachStatus::kAttached);
  halt.stands_ms = 250;
  const DetachOutcome held = tracer_->detach(request);
  ASSERT_TRUE(held.finalized);
  EXPECT_GE(held.detach_ns, 250 * kMs);
  const trace::WindowEnd stood = packets_.of(trace::Packet::kWindowEnd).back().window_end();
  EXPECT_GE(stood.detach_wait_ns(), 50 * kMs);
  EXPECT_LT(stood.detach_wait_ns(), 250 * kMs);
  EXPECT_GE(stood.stood_ns(), 250 * kMs);
  EXPECT_LE(stood.stood_ns(), held.detach_ns);
}

TEST_F(TracerTest, AThreadThatStandsWhileCuptiComesIsSaid) {
  AttachRequest request = {};
  request.window_id = 1;
  request.reason = "test";
  request.stood_since_ns = monotonic_ns() - 20 * kMs;
  ASSERT_EQ(tracer_->attach(request).status, AttachStatus::kAttached);
  const trace::WindowBegin begin = packets_.of(trace::Packet::kWindowBegin).back().window_begin();
  EXPECT_GE(begin.stood_ns(), 20 * kMs + begin.attach_ns());
  detach();
  ASSERT_EQ(attach(2).status, AttachStatus::kAttached);
  EXPECT_EQ(packets_.of(trace::Packet::kWindowBegin).back().window_begin().stood_ns(), 0);
}

// Launches on `threads` threads, `rounds` rounds: one after the other, or at once.
void launch_on_threads(int threads, int rounds, bool at_once) {
  std::atomic<int> turn{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&turn, i, threads, rounds, at_once] {
      for (int round = 0; round < rounds; ++round) {
        while (turn < round * threads + (at_once ? 0 : i)) std::this_thread::yield();
        fake_cupti::launch_in_two_halves({.duration_ns = 100}, [&] {
          if (!at_once) return;
          ++turn;
          while (turn < (round + 1) * threads) std::this_thread::yield();
        });
        if (!at_once) ++turn;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  fake_cupti::advance_ns(kMs);
}

// The host is far ahead: what was recorded ends long after the window.
TEST_F(TracerTest, WaitsLongerForTheDeviceUnlessInAHurry) {
  static std::atomic<bool> hurry;
  DetachRequest request = {};
  request.finalize = true;
  request.wait_ns = 5 * kMs;
  request.more_for_records_ns = 20'000 * kMs;
  request.in_a_hurry = [] { return hurry.load(); };
  for (const bool hurried : {false, true}) {
    hurry = hurried;
    const uint32_t window = hurried ? 2 : 1;
    ASSERT_EQ(attach(window).status, AttachStatus::kAttached);
    for (int i = 0; i < 30; ++i) fake_cupti::launch({.duration_ns = 100 * kMs});
    std::thread device([hurried] {
      for (int i = 0; i < 40 && !hurried; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        fake_cupti::advance_ns(100 * kMs);
      }
    });
    const DetachOutcome outcome = tracer_->detach(request);
    device.join();
    EXPECT_TRUE(outcome.finalized);
    if (hurried) {
      EXPECT_LT(outcome.records, 30u);
    } else {
      EXPECT_EQ(outcome.records, 30u);
    }
  }
}

TEST_F(TracerTest, NotTornDownWhereSeveralThreadsLaunchAtOnce) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  launch_on_threads(3, 20, true);
  const DetachOutcome outcome = detach();
  EXPECT_FALSE(outcome.finalized);
  EXPECT_TRUE(outcome.threads_launch);
  EXPECT_EQ(fake_cupti::calls("Finalize"), 0u);
  EXPECT_EQ(packets_.ops().size(), 60u);
  // Windows are looked at one by one.
  ASSERT_EQ(attach(2).status, AttachStatus::kAttached);
  launch_on_threads(3, 20, false);
  EXPECT_TRUE(detach().finalized);
}

TEST_F(TracerTest, TornDownWhereThreadsTakeTurns) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  launch_on_threads(3, 20, false);
  EXPECT_TRUE(detach().finalized);
  expect_joined(packets_);
}

// The training thread stands, other threads of a library go on launching: they decide.
TEST_F(TracerTest, NotTornDownWhileAThreadThatNobodyHoldsLaunches) {
  std::atomic<bool> stop{false};
  std::thread library([&] {
    while (!stop) {
      fake_cupti::launch({.duration_ns = 100});
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  DetachRequest request = {};
  request.finalize = true;
  request.wait_ns = 20 * kMs;
  request.before_finalize = [](void*, int64_t*) { return Halt::kStands; };
  // On a loaded machine the thread may not run for the moment in which it is looked for.
  bool seen = false;
  uint32_t window = 0;
  for (int i = 0; i < 200 && !seen; ++i) {
    ASSERT_EQ(attach(++window).status, AttachStatus::kAttached);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    fake_cupti::advance_ns(1000 * kMs);
    const uint64_t finalized = fake_cupti::calls("Finalize");
    const DetachOutcome outcome = tracer_->detach(request);
    seen = outcome.threads_launch;
    EXPECT_EQ(fake_cupti::calls("Finalize"), finalized + (seen ? 0 : 1));
  }
  EXPECT_TRUE(seen);
  stop = true;
  library.join();
  ASSERT_EQ(attach(++window).status, AttachStatus::kAttached);
  EXPECT_TRUE(tracer_->detach(request).finalized);
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
  EXPECT_EQ(fake_cupti::calls("ActivityRegisterCallbacks"), 1u);
  EXPECT_EQ(fake_cupti::calls("ActivityRegisterTimestampCallback"), 1u);
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

TEST_F(TracerTest, AtExitNothingIsFinalized) {
  ASSERT_EQ(attach().status, AttachStatus::kAttached);
  fake_cupti::launch();
  fake_cupti::advance_ns(kMs);
  const DetachOutcome outcome = detach(false);
  EXPECT_FALSE(outcome.finalized);
  EXPECT_EQ(packets_.ops().size(), 1u);
  EXPECT_EQ(fake_cupti::calls("Finalize"), 0u);
}

}  // namespace
}  // namespace idlescope::cuda
