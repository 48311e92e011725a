// The worked examples of the specification with their numbers (analysis.md B8).
#include <gtest/gtest.h>

#include "analysis/diagnose/leaves.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

using diagnose::analyze;
using diagnose::Diagnosis;

constexpr uint32_t kPinThread = 101;
constexpr uint32_t kWorkerThread = 200;

// 1. 40 of the 80 ms in next() are hidden; the rest is cut by the life of batch 7.
Diagnosis data_example() {
  Scene s;
  const uint32_t before = s.launch(0.000, 0.004);
  s.kernel(0.010, 100.000, before);
  s.event(trace::EVENT_LOADER_CREATE, 0.005, 0.006,
          {.iterator = 1, .a = 1, .b = 2, .c = trace::LOADER_FLAG_PIN_MEMORY});
  s.event(trace::EVENT_LOADER_WORKER_STARTED, 0.006, 0.006, {.iterator = 1, .a = 0, .b = 2000});
  s.event(trace::EVENT_LOADER_NEXT, 60, 140, {.iterator = 1, .batch = 7, .a = 0, .b = 1});
  s.event(trace::EVENT_PIN_COPY, 138, 139.5, {.thread = kPinThread, .iterator = 1, .batch = 7});
  const uint32_t h2d = s.copy_call(140.300, 140.304, 150'000'000, trace::COPY_H2D);
  s.copy(trace::COPY_H2D, trace::MEMORY_PINNED, 150'000'000, 140.310, 143.310, h2d);
  const uint32_t after = s.launch(140.400, 140.404);
  s.kernel(143.312, 183.000, after);
  s.in(s.add_worker(2000));
  // 36 ms of fetch: 4 of collate, and of the rest 18 blocked with blocks read, 14 on the CPU.
  const EventFields batch{.thread = kWorkerThread, .batch = 7};
  EventFields f = batch;
  s.event(trace::EVENT_WORKER_LOOP, 1, 190, {.thread = kWorkerThread, .a = 0, .b = 1000});
  f.a = 32, f.b = ms(4), f.c = 0;
  s.event(trace::EVENT_WORKER_FETCH, 100, 136, f);
  f.a = ms(18), f.b = ms(18), f.c = 0;
  s.event(trace::EVENT_WORKER_FETCH_CPU, 100, 136, f);
  f.a = 0, f.b = 8000, f.c = 4'000'000;
  s.event(trace::EVENT_WORKER_FETCH_IO, 100, 136, f);
  return analyze(s.take()).diagnosis;
}

TEST(WorkedExamples, DataIsCutByTheLifeOfTheBatch) {
  const Diagnosis d = data_example();
  EXPECT_EQ(leaf(d, report::DATA_STORAGE), ms(18));
  EXPECT_EQ(leaf(d, report::DATA_CPU), ms(14));
  EXPECT_EQ(leaf(d, report::DATA_COLLATE), ms(4));
  EXPECT_EQ(leaf(d, report::DATA_IPC), ms(2));
  EXPECT_EQ(leaf(d, report::DATA_PIN), ms(1.5));
  EXPECT_EQ(leaf(d, report::DATA_WAKE), ms(0.5));
  EXPECT_EQ(leaf(d, report::HOST_PYTHON), ms(0.3));
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF), ms(0.009));
  EXPECT_EQ(leaf(d, report::DISPATCH), ms(0.003));
  EXPECT_EQ(leaf(d, report::BUSY_COPY_EXPOSED), ms(3));
  EXPECT_EQ(leaf(d, report::BUSY_COMPUTE), ms(99.990 + 39.688));
  EXPECT_EQ(sum_of_leaves(device_of(d)), ms(183 - 0.010));
}

// 2. 1000 kernels of 5 us, one launch per 9 us.
TEST(WorkedExamples, LaunchBound) {
  Scene s;
  for (int i = 0; i < 1000; ++i) {
    const double t = i * 0.009;
    s.kernel(t + 0.006, t + 0.011, s.launch(t, t + 0.004));
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::BUSY_COMPUTE), ms(5.000));
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF), ms(2.997));
  EXPECT_EQ(leaf(d, report::DISPATCH), ms(0.999));
  EXPECT_TRUE(device_of(d).launch_bound);
}

// 3. The same trace shape, called early or late.
Diagnosis item_example(double called) {
  Scene s;
  s.kernel(0.010, 10.000, s.launch(0.000, 0.004));
  s.sync(called, 10.020);
  s.kernel(10.826, 20.000, s.launch(10.815, 10.819));
  return analyze(s.take()).diagnosis;
}

TEST(WorkedExamples, SyncOverALongBacklogCostsTheRefill) {
  const Diagnosis d = item_example(7.0);
  EXPECT_EQ(leaf(d, report::SYNC_EXPLICIT), ms(0.825));
  EXPECT_EQ(leaf(d, report::DISPATCH), ms(0.001));
  EXPECT_EQ(leaf(d, report::HOST_PYTHON), 0);
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF), 0);
}

TEST(WorkedExamples, SyncOfADrainedDeviceCostsLittle) {
  const Diagnosis d = item_example(9.7);
  EXPECT_EQ(leaf(d, report::SYNC_EXPLICIT), ms(0.320));
  EXPECT_EQ(leaf(d, report::HOST_PYTHON), ms(0.495));
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF), ms(0.010));
  EXPECT_EQ(leaf(d, report::DISPATCH), ms(0.001));
}

// 4. 30 ms of the copy call are hidden; 24 are exposed; the rest is the call's.
TEST(WorkedExamples, PageableCopy) {
  Scene s;
  s.kernel(0.010, 50.000, s.launch(0.000, 0.004));
  const uint32_t h2d = s.copy_call(20, 74.12, 150'000'000, trace::COPY_H2D);
  s.copy(trace::COPY_H2D, trace::MEMORY_PAGEABLE, 150'000'000, 50.1, 74.1, h2d);
  s.kernel(74.5, 120.0, s.launch(74.490, 74.494));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::BUSY_COPY_EXPOSED), ms(24));
  EXPECT_EQ(leaf(d, report::XFER_PAGEABLE), ms(0.498));
  EXPECT_EQ(leaf(d, report::DISPATCH), ms(0.002));
  EXPECT_EQ(leaf(d, report::HOST_PYTHON), 0);
}

// 6. Launch calls are long because the queue is full; the sync only waits.
TEST(WorkedExamples, FullQueueIsNotLaunchBound) {
  Scene s;
  double at = 0.010;
  for (int i = 0; i < 10; ++i) {
    const uint32_t c = s.launch(i * 1.9, i * 1.9 + 1.899);
    const double begin = i == 0 ? at : at + 0.002;
    s.kernel(std::max(begin, i * 1.9 + 0.010), begin + 10, c);
    at = begin + 10;
  }
  s.sync(at - 80, at + 0.020);
  s.kernel(at + 0.060, at + 30, s.launch(at + 0.050, at + 0.054));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::SYNC_EXPLICIT), ms(0.059));
  EXPECT_EQ(leaf(d, report::DISPATCH), ms(0.019));
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF), 0);
  EXPECT_FALSE(device_of(d).launch_bound);
  EXPECT_TRUE(device_of(d).back_pressure);
}

}  // namespace
}  // namespace idlescope::test
