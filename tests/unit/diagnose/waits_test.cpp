// What waiting calls cost beyond their own gap, and what belongs to copying piece by piece.
#include <gtest/gtest.h>

#include "proto/report.pb.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

using diagnose::analyze;
using diagnose::Diagnosis;

constexpr int kSmallKernels = 20;

// Twenty 5 us kernels, one launch per 20 us, each 6 us after its call.
void small_kernels(Scene& s, double from) {
  for (int i = 0; i < kSmallKernels; ++i) {
    const double t = from + i * 0.020;
    s.kernel(t + 0.006, t + 0.011, s.launch(t, t + 0.004));
  }
}

Diagnosis refill_after_sync(double called) {
  Scene s;
  s.kernel(0.010, 10.000, s.launch(0.000, 0.004));
  s.sync(called, 10.020);
  small_kernels(s, 10.040);
  return analyze(s.take()).diagnosis;
}

TEST(Waits, ALongBacklogPaysForTheLaunchesUntilTheHostIsAheadAgain) {
  const Diagnosis d = refill_after_sync(7.0);
  // 46 us to the first kernel, then 15 us before each other; the last us of each is dispatch.
  EXPECT_EQ(leaf(d, report::SYNC_EXPLICIT), ms(0.045 + 19 * 0.014));
  EXPECT_EQ(leaf(d, report::DISPATCH), ms(20 * 0.001));
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF), 0);
  EXPECT_EQ(leaf(d, report::HOST_PYTHON), 0);
}

// 60 steps of 400 launches, with a wait after every `between` of them and one at the end.
Diagnosis waits_every(int between) {
  Scene s;
  double at = 0;
  for (int step = 0; step < 60; ++step) {
    s.step(at);
    for (int i = 0; i < 400; ++i) {
      s.kernel(at + 0.010, at + 0.014, s.launch(at, at + 0.005));
      at += 0.020;
      if ((i + 1) % between == 0) s.sync(at - 0.004, at - 0.001);
    }
  }
  s.step(at);
  return analyze(s.take()).diagnosis;
}

TEST(Waits, LaunchesThatAGraphCouldHold) {
  EXPECT_NEAR(device_of(waits_every(400)).launches_between_waits, 1, 0.01);
  EXPECT_NEAR(device_of(waits_every(400)).waits_per_step, 1, 0.1);
  EXPECT_NEAR(device_of(waits_every(100)).launches_between_waits, 1, 0.01);  // four graphs
  EXPECT_LT(device_of(waits_every(10)).launches_between_waits, 0.01);
  EXPECT_NEAR(device_of(waits_every(10)).waits_per_step, 40, 0.1);
}

TEST(Waits, AWaitOfADrainedDevicePaysForNothingElse) {
  const Diagnosis d = refill_after_sync(9.99);
  EXPECT_EQ(leaf(d, report::SYNC_EXPLICIT), ms(0.030));
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF) + leaf(d, report::HOST_PYTHON), ms(0.015 + 19 * 0.014));
}

TEST(Waits, WhatALeadDoesNotCoverKeepsItsOwnLeaf) {
  // 75 us of lead: 45 for the first gap, 28 for the next two, 2 of the third.
  const Diagnosis d = refill_after_sync(9.945);
  EXPECT_EQ(leaf(d, report::SYNC_EXPLICIT), ms(0.075));
  EXPECT_EQ(leaf(d, report::LAUNCH_LEAF) + leaf(d, report::HOST_PYTHON),
            ms(0.045 + 19 * 0.014 - 0.075));
}

TEST(Waits, ALateBatchEndsTheLead) {
  Scene s;
  s.event(trace::EVENT_LOADER_CREATE, 0.001, 0.002, {.iterator = 1, .a = 1, .b = 2});
  s.kernel(0.010, 10.000, s.launch(0.000, 0.004));
  s.sync(7.0, 10.020);
  s.event(trace::EVENT_LOADER_NEXT, 10.030, 12.000, {.iterator = 1, .batch = 1, .a = 0, .b = 1});
  small_kernels(s, 12.010);
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::SYNC_EXPLICIT) + leaf(d, report::DATA_FETCH) +
                leaf(d, report::HOST_PYTHON) + leaf(d, report::LAUNCH_LEAF),
            ms(2.015 + 19 * 0.014));
  EXPECT_GE(leaf(d, report::LAUNCH_LEAF), ms(19 * 0.014));
}

TEST(Waits, TheDriversQueueLimitsTheLead) {
  // 5 s of waiting would have filled the queue many times over.
  Scene s;
  s.kernel(0.010, 1000.0, s.launch(0.000, 0.004));
  s.sync(1.0, 1000.020);
  for (int i = 0; i < 20'000; ++i) {
    const double t = 1000.040 + i * 0.020;
    s.kernel(t + 0.006, t + 0.011, s.launch(t, t + 0.004));
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  // Mean op 55 us: 1 000 of them are 55 ms, not the 280 ms of gaps.
  EXPECT_LT(leaf(d, report::SYNC_EXPLICIT), ms(60));
  EXPECT_GT(leaf(d, report::SYNC_EXPLICIT), ms(50));
}

// Ten blocking pageable copies of `bytes`, 30 us apart, on a device with nothing else to do.
Diagnosis copies_in_a_row(int count, uint64_t bytes) {
  Scene s;
  s.kernel(0.010, 0.050, s.launch(0.000, 0.004));
  double t = 0.100;
  for (int i = 0; i < count; ++i, t += 0.030) {
    const uint32_t c = s.copy_call(t, t + 0.012, bytes, trace::COPY_H2D);
    s.copy(trace::COPY_H2D, trace::MEMORY_PAGEABLE, bytes, t + 0.006, t + 0.009, c);
    s.sync(t + 0.012, t + 0.015);
  }
  s.kernel(t + 0.006, t + 1.0, s.launch(t, t + 0.004));
  return analyze(s.take()).diagnosis;
}

TEST(Waits, HostTimeBetweenSmallBlockingCopiesIsCopying) {
  const Diagnosis d = copies_in_a_row(10, 16 << 10);
  // 15 us of Python between two copies, nine times.
  EXPECT_GE(leaf(d, report::XFER_SMALL), ms(9 * 0.015));
  EXPECT_LE(leaf(d, report::LAUNCH_LEAF) + leaf(d, report::HOST_PYTHON), ms(0.050 + 0.030));
  EXPECT_EQ(leaf(d, report::XFER_PAGEABLE), 0);
}

TEST(Waits, OneSmallCopyIsNoSeries) {
  const Diagnosis d = copies_in_a_row(1, 16 << 10);
  EXPECT_EQ(leaf(d, report::XFER_SMALL), 0);
}

TEST(Waits, LargeCopiesInARowAreNotSmallOnes) {
  const Diagnosis d = copies_in_a_row(10, 1 << 20);
  EXPECT_EQ(leaf(d, report::XFER_SMALL), 0);
}

TEST(Waits, ACopyThatSeemsToEndAfterItsWaitReturnedIsExposed) {
  Scene s;
  s.kernel(0.010, 10.000, s.launch(0.000, 0.004));
  const uint32_t c = s.copy_call(2.0, 30.000, 150 << 20, trace::COPY_H2D);
  s.copy(trace::COPY_H2D, trace::MEMORY_PAGEABLE, 150 << 20, 10.020, 30.025, c);
  s.sync(30.000, 30.010);
  s.kernel(30.060, 40.0, s.launch(30.050, 30.054));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::BUSY_COPY_EXPOSED), ms(20.005));
}

// Batch 7 was ready at 2 ms; without a pin thread next() has to unpickle it.
Diagnosis hand_out(double next_begin, double next_end) {
  Scene s;
  s.event(trace::EVENT_LOADER_CREATE, 0.001, 0.002, {.iterator = 1, .a = 1, .b = 2, .c = 0});
  s.event(trace::EVENT_LOADER_WORKER_STARTED, 0.006, 0.006, {.iterator = 1, .a = 0, .b = 2000});
  s.kernel(0.010, 10.000, s.launch(0.000, 0.004));
  s.event(trace::EVENT_LOADER_NEXT, next_begin, next_end,
          {.iterator = 1, .batch = 7, .a = 1, .b = 1});
  s.kernel(next_end + 0.016, next_end + 20, s.launch(next_end + 0.010, next_end + 0.014));
  s.in(s.add_worker(2000));
  s.event(trace::EVENT_WORKER_LOOP, 0.1, 100, {.thread = 200, .a = 0, .b = 1000});
  s.event(trace::EVENT_WORKER_FETCH, 1, 2, {.thread = 200, .batch = 7, .a = 32, .b = 0, .c = 0});
  return analyze(s.take()).diagnosis;
}

TEST(Waits, UnpicklingInNextIsHandOverNotWakingUp) {
  const Diagnosis d = hand_out(9.0, 50);
  EXPECT_EQ(leaf(d, report::DATA_IPC), ms(40));
  EXPECT_EQ(leaf(d, report::DATA_WAKE), 0);
  EXPECT_EQ(d.limiter, report::LIMITER_IPC);
}

TEST(Waits, WakingUpIsShort) {
  const Diagnosis d = hand_out(9.8, 10.5);
  EXPECT_EQ(leaf(d, report::DATA_IPC), 0);
}

TEST(Waits, ALoaderKnownByNameOnlyIsNotHostCode) {
  Scene s;
  s.event(trace::EVENT_LOADER_UNSEEN, 0.001, 0.001, {.iterator = 1, .a = 1});
  s.kernel(0.010, 10.000, s.launch(0.000, 0.004));
  s.event(trace::EVENT_LOADER_NEXT, 9.0, 30.0, {.iterator = 1, .batch = 0});
  s.kernel(30.016, 40, s.launch(30.010, 30.014));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::DATA_UNSEEN), ms(20));
}

// Four kernels tried in turn with a wait after each, then the same model step five times.
Diagnosis tries_kernels(bool waits, bool again) {
  Scene s;
  s.kernel(0.010, 1.000, s.launch(0.000, 0.004), 7, "relu");
  double t = 1.100;
  for (const char* name : {"conv_fprop_a", "conv_fprop_b", "sgemm_c", "winograd_d"}) {
    s.kernel(t + 0.006, t + 0.106, s.launch(t, t + 0.004), 7, name);
    if (waits) s.sync(t + 0.010, t + 0.120);
    t += 2;
  }
  s.kernel(t + 0.006, t + 10, s.launch(t, t + 0.004), 7, "relu");
  read::Recording recording = s.take();
  if (again) {  // each variant is run once more, far away
    read::Process& process = recording.processes[0];
    const size_t n = process.ops.size();
    for (size_t k = 0; k < 2; ++k) {
      for (size_t i = 1; i + 1 < n; ++i) {
        for (int filler = 0; filler < 20; ++filler) {
          read::Op op = process.ops[k == 0 ? n - 1 : i];
          op.begin_ns = process.ops.back().end_ns + 10;
          op.end_ns = op.begin_ns + 1000;
          process.ops.push_back(op);
        }
      }
    }
  }
  return analyze(std::move(recording)).diagnosis;
}

TEST(Waits, TryingKernelsForAShapeIsAutotuning) {
  // From the end of the first trial to the begin of the last, less the trials themselves.
  const Diagnosis d = tries_kernels(true, false);
  EXPECT_GE(leaf(d, report::COMPILE_AUTOTUNE), ms(3 * 1.89));
  EXPECT_LE(leaf(d, report::COMPILE_AUTOTUNE), ms(3 * 1.90));
}

TEST(Waits, LayersInARowAreNoAutotuning) {
  EXPECT_EQ(leaf(tries_kernels(false, false), report::COMPILE_AUTOTUNE), 0);
  EXPECT_EQ(leaf(tries_kernels(true, true), report::COMPILE_AUTOTUNE), 0);
}

TEST(Waits, KernelsThatGetSlowerAreSaid) {
  for (const double factor : {1.0, 1.08}) {
    Scene s;
    double t = 0;
    for (int step = 0; step < 40; ++step) {
      s.step(t);
      for (int i = 0; i < 4; ++i) {
        const double length = step < 20 ? 20.0 : 20.0 * factor;
        s.kernel(t + 0.010, t + length, s.launch(t, t + 0.004));
        t += length;
      }
    }
    s.step(t);
    read::Recording recording = s.take();
    // One kernel, as a recorder that knows it would write it.
    read::Process& process = recording.processes[0];
    for (read::Op& op : process.ops) op.descriptor = process.ops.front().descriptor;
    const Diagnosis d = analyze(std::move(recording)).diagnosis;
    EXPECT_NEAR(device_of(d).kernel_drift, factor - 1, 0.01) << factor;
  }
}

}  // namespace
}  // namespace idlescope::test
