// Traps of whole loops (analysis.md B9): start-up, order of batches, cores, locks, slower
// clocks, a second process, one rank of several.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/diagnose/kernel_fill.h"
#include "proto/report.pb.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

using diagnose::analyze;
using diagnose::Diagnosis;

constexpr uint32_t kAutograd = 101;

// Modules are loaded and memory grows in the first steps: not what the steady step costs.
TEST(LoopTraps, FirstStepsAreWarmUp) {
  Scene s;
  double at = 0;
  for (int i = 0; i < 60; ++i) {
    s.step(at);
    if (i < 5) {
      s.call(trace::CALL_MODULE_LOAD, "cuLibraryLoadData", at + 0.1, at + 40);
      s.call(trace::CALL_ALLOC_DEVICE, "cudaMalloc", at + 40, at + 60);
      at += 60;
    }
    s.kernel(at + 0.010, at + 9.9, s.launch(at + 0.001, at + 0.005));
    at += 10;
  }
  s.step(at);
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(d.verdict, report::COMPUTE);
  EXPECT_GE(d.step.dropped_warmup, 4u);  // the first one is partial for the device
  EXPECT_EQ(leaf(d, report::COMPILE_MODULE), 0);
  EXPECT_EQ(leaf(d, report::ALLOC_DEVICE), 0);
  EXPECT_NEAR(d.step.mean_ns, 10e6, 0.05e6);
}

// A loader whose workers take `wall` ms for a batch, of which they wait `queued` for a CPU.
// The device computes `device` ms a batch; batches are handed out in order, each `held` ms after
// its fetch, at the end of which it is serialised for `pickled` ms. Workers pause before each
// fetch.
Diagnosis loader_job(const std::vector<double>& wall, double queued, double device,
                     double held = 0.05, double pickled = 0, double pause = 0) {
  Scene s;
  const auto workers = static_cast<int64_t>(wall.size());
  constexpr int kBatches = 80;
  s.event(trace::EVENT_LOADER_CREATE, 0.001, 0.002,
          {.iterator = 1, .a = workers, .b = 2, .c = trace::LOADER_FLAG_PERSISTENT});
  std::vector<double> done(kBatches);
  std::vector<double> busy(wall.size(), 0.01);
  for (int b = 0; b < kBatches; ++b) {
    auto& until = busy[static_cast<size_t>(b) % wall.size()];
    until += pause + wall[static_cast<size_t>(b) % wall.size()];
    done[static_cast<size_t>(b)] = until;
  }
  for (int64_t w = 0; w < workers; ++w) {
    s.event(trace::EVENT_LOADER_WORKER_STARTED, 0.003, 0.003,
            {.iterator = 1, .a = w, .b = 2000 + w});
  }
  double at = 0.1;
  for (int b = 0; b < kBatches; ++b) {
    const double ready = done[static_cast<size_t>(b)] + held;
    const auto waiting =
        std::count_if(done.begin() + b, done.end(), [&](double t) { return t < at; });
    s.step(at);
    const double got = std::max(at + 0.02, ready);
    s.event(trace::EVENT_LOADER_NEXT, at, got,
            {.iterator = 1, .batch = b, .a = static_cast<int64_t>(waiting), .b = 1});
    s.kernel(got + 0.02, got + 0.02 + device, s.launch(got + 0.01, got + 0.014));
    at = got + 0.02 + device;
  }
  s.step(at);
  for (int64_t w = 0; w < workers; ++w) {
    const double length = wall[static_cast<size_t>(w)];
    s.in(s.add_worker(2000 + w));
    s.event(trace::EVENT_WORKER_LOOP, 0.005, at, {.thread = 9, .a = w, .b = 1000});
    for (int b = static_cast<int>(w); b < kBatches; b += static_cast<int>(workers)) {
      const double end = done[static_cast<size_t>(b)];
      s.event(trace::EVENT_WORKER_FETCH, end - length, end,
              {.thread = 9, .batch = b, .a = 32, .b = 0, .c = 0});
      s.event(trace::EVENT_WORKER_FETCH_CPU, end - length, end,
              {.thread = 9,
               .batch = b,
               .a = ms(length - queued),
               .b = ms(length - queued),
               .c = ms(queued)});
      if (pickled == 0) continue;
      s.event(trace::EVENT_WORKER_PICKLE, end + held - pickled, end + held,
              {.thread = 10, .batch = b, .a = 1000});
    }
  }
  return analyze(s.take()).diagnosis;
}

TEST(LoopTraps, SlowBatchesHoldUpReadyOnes) {
  const Diagnosis d = loader_job({30, 2, 2, 2}, 0, 4);
  EXPECT_EQ(d.verdict, report::DATA);
  EXPECT_EQ(d.limiter, report::LIMITER_ORDERING);
}

// Workers pause between fetches, but without pauses they would still be too few.
TEST(LoopTraps, PausesOfWorkersThatAreTooFewAreNotTheLimit) {
  const Diagnosis d = loader_job({40, 40}, 0, 4, 0.05, 0, 10);
  EXPECT_NEAR(d.loader.worker_busy_share, 0.8, 0.03);
  EXPECT_EQ(d.limiter, report::LIMITER_WORKERS);
  // Most of the waiting is their pauses.
  EXPECT_NE(loader_job({40, 40}, 0, 4, 0.05, 0, 60).limiter, report::LIMITER_WORKERS);
}

TEST(LoopTraps, MoreWorkersThanCoresAreNoTooFewWorkers) {
  const Diagnosis d = loader_job({40, 40, 40, 40}, 20, 4);
  EXPECT_EQ(d.verdict, report::DATA);
  EXPECT_EQ(d.limiter, report::LIMITER_CORES);
  EXPECT_EQ(loader_job({40, 40, 40, 40}, 0, 4).limiter, report::LIMITER_WORKERS);
}

// A batch leaves its worker late because the next fetch has the interpreter lock: what limits
// the loader is still the fetching.
TEST(LoopTraps, BatchesHeldByTheNextFetchAreNotTransport) {
  const Diagnosis d = loader_job({40, 40}, 0, 4, 15, 1);
  EXPECT_EQ(d.verdict, report::DATA);
  EXPECT_EQ(d.limiter, report::LIMITER_WORKERS);
  EXPECT_EQ(d.top_leaf, report::DATA_CPU);
  EXPECT_GT(leaf(d, report::DATA_CPU), 5 * leaf(d, report::DATA_IPC));
  // Serialising takes as long as fetching does: it is part of what limits.
  const Diagnosis slow = loader_job({20, 20}, 0, 4, 30, 19);
  EXPECT_GT(leaf(slow, report::DATA_IPC), leaf(slow, report::DATA_CPU));
  // Workers that mostly wait for somebody to take their batches hold nothing back.
  const Diagnosis idle = loader_job({5, 5}, 0, 30, 35, 1);
  EXPECT_EQ(leaf(idle, report::DATA_CPU), 0);
}

// The launch itself costs 4 us; the runtime's lock is held by another thread's allocation.
TEST(LoopTraps, LaunchBehindAnAllocationIsALock) {
  Scene s;
  for (int i = 0; i < 40; ++i) {
    const double t = i * 0.1;
    s.kernel(t + 0.006, t + 0.09, s.launch(t, t + 0.004));
  }
  s.call(trace::CALL_ALLOC_PINNED, "cudaHostAlloc", 4.0, 7.0, kAutograd);
  s.kernel(7.02, 9, s.launch(4.01, 7.01));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_NEAR(static_cast<double>(leaf(d, report::ALLOC_LOCK)), 3e6, 0.05e6);
  EXPECT_LT(leaf(d, report::LAUNCH_LEAF), ms(0.7));  // 40 launches of an idle device, 15 us each
}

// A damaged file holds any value; their differences are taken all the same.
TEST(LoopTraps, CountersMayHoldAnyValue) {
  Scene s;
  double at = 0;
  for (int i = 0; i < 60; ++i) {
    s.step(at);
    s.kernel(at + 0.010, at + 9.9, s.launch(at + 0.001, at + 0.005));
    at += 10;
  }
  for (const trace::CounterKind kind :
       {trace::COUNTER_PROCESS_CPU_NS, trace::COUNTER_SYSTEM_CPU_BUSY_NS}) {
    s.here().counters.push_back({kind, ms(1), INT64_MIN});
    s.here().counters.push_back({kind, ms(590), INT64_MAX});
  }
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_GT(d.process_cpus, 1e9);
  EXPECT_EQ(d.free_cores, 0);
}

// Names that cuBLAS and CUTLASS gave to kernels on an H200.
TEST(LoopTraps, MatrixProductsInFullPrecisionAreKnownByName) {
  for (const char* name :
       {"sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_"
        "alignc4_execute_kernel__5x_cublas",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>"}) {
    EXPECT_TRUE(diagnose::is_fp32_matrix(name)) << name;
  }
  for (const char* name :
       {"sm80_xmma_gemm_bf16f32_bf16f32_f32_nn_n_tilesize128x128x32_stage4_tensor16x8x16_execute",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16_stage4_tensor16x8x8_execute",
        "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "vectorized_elementwise_kernel"}) {
    EXPECT_FALSE(diagnose::is_fp32_matrix(name)) << name;
  }
}

// Clocks go down, each kernel takes longer: the device is still busy, nothing else is slow.
TEST(LoopTraps, SlowerKernelsAreNoCauseOfIdleTime) {
  Scene s;
  double at = 0;
  for (int i = 0; i < 60; ++i) {
    s.step(at);
    const double length = 10 * (1 + 0.004 * i);
    s.kernel(at + 0.010, at + length - 0.010, s.launch(at + 0.001, at + 0.005));
    at += length;
  }
  s.step(at);
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(d.verdict, report::COMPUTE);
  for (const auto& share : device_of(d).verdict_shares) {
    if (share.verdict != report::COMPUTE) {
      EXPECT_LT(share.share, 0.01);
    }
  }
}

TEST(LoopTraps, SecondProcessOnTheDeviceIsSaid) {
  for (const bool same : {false, true}) {
    Scene s(2);
    for (size_t p = 0; p < 2; ++p) {
      s.in(p);
      if (same) s.here().devices[0].identity = "gpu";
      for (int i = 0; i < 40; ++i) s.kernel(i, i + 0.5, s.launch(i - 0.1, i - 0.09));
    }
    const Diagnosis d = analyze(s.take()).diagnosis;
    EXPECT_EQ(device_of(d).shared_with_other_process, same);
  }
}

TEST(LoopTraps, OneRankOfSeveralCannotTellTransferFromWaiting) {
  Scene s;
  trace::Process* identity = s.here().header.mutable_process();
  identity->set_has_rank(true);
  identity->set_world_size(4);
  s.kernel(0.010, 80, s.launch(0.002, 0.006));
  s.kernel(80, 120, s.launch(1, 1.004), 7, "ncclDevKernel_AllReduce");
  s.kernel(120, 150, s.launch(2, 2.004));
  const Diagnosis d = analyze(s.take()).diagnosis;
  EXPECT_EQ(leaf(d, report::COMM_UNVERIFIED), ms(40));
  EXPECT_EQ(leaf(d, report::BUSY_COMM_EXPOSED), 0);
  for (const diagnose::LeafTime& time : device_of(d).leaves) {
    if (time.leaf == report::COMM_UNVERIFIED) {
      EXPECT_EQ(time.grade_ns[2], ms(40));
    }
  }
  EXPECT_TRUE(std::any_of(d.abstentions.begin(), d.abstentions.end(),
                          [](const auto& a) { return a.leaf == report::COMM_STRAGGLER; }));
}

// A clock of the device that runs 20 us late: .item() still is a wait, a launch a launch.
TEST(LoopTraps, LateDeviceClockChangesNoCause) {
  const auto scene = [](double late) {
    Scene s;
    double at = 0;
    for (int i = 0; i < 60; ++i) {
      s.step(at);
      s.kernel(at + 0.006 + late, at + 5 + late, s.launch(at, at + 0.004));
      const uint32_t c = s.copy_call(at + 0.010, at + 5.014, 4, trace::COPY_D2H);
      s.copy(trace::COPY_D2H, trace::MEMORY_PAGEABLE, 4, at + 5.001 + late, at + 5.005 + late, c);
      s.sync(at + 5.020, at + 5.022);
      at += 8;  // 3 ms of work behind .item()
    }
    s.step(at);
    return analyze(s.take()).diagnosis;
  };
  const Diagnosis exact = scene(0);
  const Diagnosis late = scene(0.020);
  EXPECT_EQ(exact.verdict, report::SYNC);
  EXPECT_EQ(late.verdict, report::SYNC);
  EXPECT_NEAR(static_cast<double>(leaf(late, report::SYNC_SCALAR)),
              static_cast<double>(leaf(exact, report::SYNC_SCALAR)), 60 * 0.06e6);
}

}  // namespace
}  // namespace idlescope::test
