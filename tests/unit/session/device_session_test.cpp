// The device session as the rest of the library uses it, over the fake CUPTI and the real file:
// one story in one process, because there is one drain thread per process.
#include "profiler/session/device_session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "profiler/emit/trace_file.h"
#include "profiler/session/device_state.h"
#include "profiler/session/options.h"
#include "proto/trace.pb.h"
#include "tests/fake_cupti/fake_cupti.h"

namespace idlescope::session {
namespace {

void pause_ms(int duration) { std::this_thread::sleep_for(std::chrono::milliseconds(duration)); }

bool within_seconds(int limit, const std::function<bool()>& condition) {
  for (int i = 0; i < limit * 200; ++i) {
    if (condition()) return true;
    pause_ms(5);
  }
  return condition();
}

// All packets of the one file in `folder`.
trace::Trace recorded(const std::string& folder) {
  trace::Trace all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".istrace") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    EXPECT_TRUE(all.ParseFromIstream(&in)) << entry.path();
  }
  return all;
}

void ignore_failure(const char*, const char*, int) {}

TEST(DeviceSession, OneProcess) {
  std::string folder = ::testing::TempDir() + "idlescope_session_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  emit::configure_trace_file({folder.c_str(), uint64_t{1} << 30, false}, ignore_failure);
  memcpy(options().header.window, "off", sizeof "off");
  options().header.budget = 0.01;
  fake_cupti::reset(130001, false);
  cuda::set_cupti_for_test(&fake_cupti::table());

  // Before CUDA is up nothing has a thread and nothing happens.
  on_step(1, false);
  on_other_profiler(true);
  on_other_profiler(false);
  finish_device();
  EXPECT_EQ(device_state().pid.load(), 0);

  on_cuda_initialized();
  on_cuda_initialized();  // the driver may call twice
  EXPECT_EQ(device_state().pid.load(), getpid());
  EXPECT_FALSE(fake_cupti::attached());

  request_window();
  ASSERT_TRUE(within_seconds(5, [] { return device_statistics().window_open; }));
  for (int i = 0; i < 50; ++i) fake_cupti::launch({.duration_ns = 100});
  request_window_end();
  EXPECT_TRUE(within_seconds(5, [] { return !fake_cupti::attached(); }));
  EXPECT_TRUE(within_seconds(5, [] { return device_statistics().gpu_ops == 50; }));
  EXPECT_EQ(device_statistics().host_calls, 50u);

  // Another tool gets CUPTI before its start returns, and it is not taken back meanwhile.
  request_window();
  ASSERT_TRUE(within_seconds(5, [] { return device_statistics().window_open; }));
  on_other_profiler(true);
  EXPECT_FALSE(fake_cupti::attached());
  request_window();
  pause_ms(100);
  EXPECT_FALSE(fake_cupti::attached());
  on_other_profiler(false);
  EXPECT_TRUE(within_seconds(5, fake_cupti::attached));
  request_window_end();
  EXPECT_TRUE(within_seconds(5, [] { return !fake_cupti::attached(); }));

  // CUPTI comes and goes while the training thread stands between two steps.
  std::atomic<bool> training{true};
  std::atomic<bool> in_step{false};
  std::atomic<int> switches{0};
  std::atomic<int> under_a_step{0};
  fake_cupti::watch([&](const std::string& function) {
    if (function != "Subscribe" && function != "ActivityEnable" && function != "Finalize") return;
    ++switches;
    if (in_step) ++under_a_step;
  });
  std::thread trainer([&] {
    while (training) {
      in_step = true;
      pause_ms(2);
      in_step = false;
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      on_step(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec, false);
    }
  });
  pause_ms(50);
  for (int i = 0; i < 5; ++i) {
    request_window();
    EXPECT_TRUE(within_seconds(5, [] { return device_statistics().window_open; }));
    request_window_end();
    EXPECT_TRUE(within_seconds(5, [] { return !fake_cupti::attached(); }));
  }
  const uint64_t steps_then = device_statistics().steps;
  EXPECT_TRUE(within_seconds(5, [&] { return device_statistics().steps > steps_then + 5; }))
      << "it goes on afterwards";
  training = false;
  trainer.join();
  EXPECT_GE(switches, 5 * 3);
  EXPECT_EQ(under_a_step, 0);
  // A job that has stopped marking is not waited for long.
  request_window();
  EXPECT_TRUE(within_seconds(5, [] { return device_statistics().window_open; }));
  request_window_end();
  EXPECT_TRUE(within_seconds(5, [] { return !fake_cupti::attached(); }));
  fake_cupti::watch(nullptr);

  // No attach and no detach while a stream is being captured.
  on_capture(true);
  request_window();
  pause_ms(150);
  EXPECT_FALSE(fake_cupti::attached());
  on_capture(false);
  EXPECT_TRUE(within_seconds(5, [] { return device_statistics().window_open; }));
  on_capture(true);
  request_window_end();
  pause_ms(150);
  EXPECT_TRUE(device_statistics().window_open);
  on_capture(false);

  // A graph makes us stay: this version is not trusted to finalize then.
  EXPECT_TRUE(within_seconds(5, [] { return !device_statistics().window_open; }));
  EXPECT_TRUE(fake_cupti::attached());
  request_window();
  ASSERT_TRUE(within_seconds(5, [] { return device_statistics().window_open; }));
  fake_cupti::launch_graph({.duration_ns = 10, .graph_id = 2, .graph_nodes = 3});
  request_window_end();
  EXPECT_TRUE(within_seconds(5, [] { return !device_statistics().window_open; }));
  EXPECT_TRUE(fake_cupti::attached());
  EXPECT_FALSE(fake_cupti::kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));

  // In a forked child the parent's session is not ours.
  const pid_t child = fork();
  if (child == 0) {
    finish_device();
    _exit(device_statistics().windows == 0 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);

  request_window();
  ASSERT_TRUE(within_seconds(5, [] { return device_statistics().window_open; }));
  for (int i = 0; i < 7; ++i) fake_cupti::launch({.duration_ns = 100});
  const uint64_t finalized = fake_cupti::calls("Finalize");
  finish_device();
  EXPECT_EQ(device_state().ended.load(), 1u);
  EXPECT_EQ(fake_cupti::calls("Finalize"), finalized) << "not at exit";
  EXPECT_EQ(device_statistics().gpu_ops, 50u + 3 + 7);
  EXPECT_EQ(device_statistics().windows, 12u);
  finish_device();  // harmless
  EXPECT_GE(device_statistics().estimated_cost_ns, device_statistics().detach_ns / 100);

  // What the training thread stood for is in the file: at least until other threads had settled.
  size_t began_held = 0;
  size_t ended_held = 0;
  const trace::Trace file = recorded(folder);
  for (const trace::Packet& packet : file.packet()) {
    if (packet.has_window_begin()) began_held += packet.window_begin().stood_ns() >= 300'000;
    if (!packet.has_window_end() || packet.window_end().stood_ns() == 0) continue;
    ++ended_held;
    EXPECT_GE(packet.window_end().stood_ns(), 300'000);
    EXPECT_GE(packet.window_end().detach_ns(), 300'000) << "waiting for others to settle is ours";
  }
  EXPECT_GE(began_held, 5u);
  EXPECT_GE(ended_held, 5u);
  cuda::set_cupti_for_test(nullptr);
}

}  // namespace
}  // namespace idlescope::session
