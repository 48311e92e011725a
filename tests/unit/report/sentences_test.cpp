// Sentences that say what the evidence gives, in words that fit the numbers.
#include "analysis/report/sentences.h"

#include <gtest/gtest.h>

#include "tests/unit/report/diagnosis_fixture.h"

namespace idlescope::report {
namespace {

bool says(const Report& report, const std::string& words) {
  return said(report).find(words) != std::string::npos;
}

std::string not_it(const Report& report) {
  std::string out;
  for (const NotIt& item : report.not_it()) out += item.text().text() + "\n";
  return out;
}

TEST(Sentences, OneIsNotSeveral) {
  Diagnosis d = loop(CANNOT_TELL, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  d.certainty = CANNOT_TELL_YET;
  d.reason = diagnose::Reason::kFewSteps;
  d.step.steady_steps = 1;
  EXPECT_TRUE(says(report_of(d), "1 steady step was recorded; a verdict needs 20"))
      << said(report_of(d));
  EXPECT_TRUE(says(report_of(d), "1 steady step, ")) << said(report_of(d));

  d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  d.reason = diagnose::Reason::kImport;
  d.step.steady_steps = 1;
  EXPECT_TRUE(says(report_of(d), "This file holds 1 step: enough for a likely answer"))
      << said(report_of(d));
  d.step.steady_steps = 6;
  EXPECT_TRUE(says(report_of(d), "This file holds 6 steps:")) << said(report_of(d));

  d = loop(SYNC, {{BUSY_COMPUTE, 10}, {SYNC_SCALAR, 5}});
  d.calls.push_back({"cudaStreamSynchronize_v3020", 100, 1'000'000'000, 500'000'000});
  EXPECT_TRUE(says(report_of(d), "cudaStreamSynchronize runs once a step")) << said(report_of(d));
  d.calls[0].count = 250;
  EXPECT_TRUE(says(report_of(d), "runs 2.5 times a step")) << said(report_of(d));
}

TEST(Sentences, NoStepsSaidAsNone) {
  Diagnosis d;
  d.verdict = CANNOT_TELL;
  d.certainty = CANNOT_TELL_YET;
  d.reason = diagnose::Reason::kNoDevice;
  EXPECT_TRUE(says(report_of(d), "no steps, host side only")) << said(report_of(d));
}

TEST(Sentences, AnIdleTenthIsNotNothing) {
  Diagnosis d = loop(COMPUTE, {{BUSY_COMPUTE, 97}, {HOST_PYTHON, 3}});
  EXPECT_EQ(report_of(d).sentences(0).id(), "verdict-compute");
  d = loop(COMPUTE, {{BUSY_COMPUTE, 90}, {HOST_PYTHON, 10}});
  EXPECT_EQ(report_of(d).sentences(0).id(), "verdict-compute-mostly");
  d = loop(UNDERFILLED, {{BUSY_COMPUTE, 86}, {LAUNCH_LEAF, 14}});
  d.devices[0].fill = 0.2;
  EXPECT_FALSE(says(report_of(d), "never idle")) << said(report_of(d));
}

TEST(Sentences, WithoutStepsNothingIsAStep) {
  for (const Verdict verdict : {COMPUTE, DATA, TRANSFER, LAUNCH, SYNC, HOST}) {
    Diagnosis d =
        loop(verdict,
             {{BUSY_COMPUTE, 80}, {LAUNCH_LEAF, 10}, {HOST_PYTHON, 10}, {BUSY_COPY_EXPOSED, 9}});
    d.verdict_shares.push_back({verdict == HOST ? LAUNCH : HOST, 0.1, {}, 0});
    d.copies.push_back({"H2D pinned", 100, 15'400'000'000, 900'000'000, 900'000'000, 0});
    d.step.window_only = true;
    d.not_it.push_back({diagnose::NotIt::What::kSync, "cudaDeviceSynchronize", 1e9, 0, false});
    d.not_it.push_back({diagnose::NotIt::What::kLaunch, "cudaLaunchKernel", 1.1e9, 1e6, false});
    const std::string text = text_of(report_of(d));
    EXPECT_EQ(text.find("a step"), std::string::npos) << text;
    EXPECT_EQ(text.find("each step"), std::string::npos) << text;
  }
}

TEST(Sentences, StartUpAloneIsNotTraining) {
  Diagnosis d = loop(STARTUP, {{BUSY_COMPUTE, 1}, {ALLOC_DEVICE, 5}, {HOST_PYTHON, 5}});
  d.step.startup_only = true;
  const Report report = report_of(d);
  EXPECT_TRUE(says(report, "Only start-up was recorded, no training. Let it run longer."))
      << said(report);
  EXPECT_TRUE(report.fixes().empty());
}

TEST(Sentences, LaunchCallsAreOneSuspect) {
  Diagnosis d = loop(COMPUTE, {{BUSY_COMPUTE, 97}, {LAUNCH_LEAF, 3}});
  using What = diagnose::NotIt::What;
  d.not_it.push_back({What::kLaunch, "cudaLaunchKernel", 10 * kMs, 0.1 * kMs, true});
  d.not_it.push_back({What::kLaunch, "cudaLaunchKernelExC", 6 * kMs, 0, true});
  d.not_it.push_back({What::kSync, "cudaStreamSynchronize", 8 * kMs, 0, false});
  EXPECT_EQ(not_it(report_of(d)),
            "Launch calls take 16 ms a step: they wait because the GPU is full.\n"
            "cudaStreamSynchronize: 8 ms of waiting a step, but none of it cost GPU time.\n");
  d.not_it[2].cost_ns_per_step = 4'000;
  EXPECT_NE(not_it(report_of(d)).find("but only 4 us of it cost GPU time"), std::string::npos);
}

TEST(Sentences, WhatIsHiddenIsSaidOnlyWhereItIsKnown) {
  Diagnosis d = loop(TRANSFER, {{BUSY_COMPUTE, 5}, {BUSY_COPY_EXPOSED, 7}, {XFER_PAGEABLE, 13}});
  d.copies.push_back({"H2D pageable", 100, 15'400'000'000, 2'000'000'000, 700'000'000, 0});
  // 20 ms of copying, 5 ms of computing: 65 % cannot be hidden behind it.
  EXPECT_FALSE(says(report_of(d), "hidden")) << said(report_of(d));
  d = loop(TRANSFER, {{BUSY_COMPUTE, 20}, {BUSY_COPY_EXPOSED, 7}});
  d.copies.push_back({"H2D pinned", 100, 15'400'000'000, 1'000'000'000, 700'000'000, 0});
  EXPECT_TRUE(says(report_of(d), "30 % of the copying is hidden behind computing."))
      << said(report_of(d));
  d.copies[0].exposed_ns = d.copies[0].total_ns;
  EXPECT_TRUE(says(report_of(d), "None of the copying is hidden behind computing."))
      << said(report_of(d));
}

TEST(Sentences, AFourfoldStepIsNotTheRecordersDoing) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  d.step.slowdown = 4.01;
  EXPECT_TRUE(says(report_of(d), "took 4.01x as long as the others")) << said(report_of(d));
  EXPECT_FALSE(says(report_of(d), "slowed")) << said(report_of(d));
  d.step.slowdown = 1.1;
  EXPECT_TRUE(says(report_of(d), "recording slowed them by 10 %")) << said(report_of(d));
}

TEST(Sentences, ACppJobIsToldCpp) {
  Diagnosis d = loop(
      TRANSFER, {{BUSY_COMPUTE, 5}, {BUSY_COPY_EXPOSED, 15}, {XFER_PAGEABLE, 5}, {LAUNCH_LEAF, 3}});
  d.copies.push_back({"H2D pageable", 100, 15'400'000'000, 2'000'000'000, 2'000'000'000, 0});
  EXPECT_NE(text_of(report_of(d)).find("DataLoader"), std::string::npos);
  d.processes[0].python_version.clear();
  const std::string text = text_of(report_of(d));
  for (const char* python : {"DataLoader", "torch.compile", "torch.cuda", "=True"}) {
    EXPECT_EQ(text.find(python), std::string::npos) << python << "\n" << text;
  }
  EXPECT_NE(text.find("x.pin_memory().to(device"), std::string::npos) << text;
}

TEST(Sentences, TheStepsOwnNameIsNoCause) {
  Diagnosis d = loop(HOST, {{BUSY_COMPUTE, 5}, {HOST_PYTHON, 15}});
  diagnose::Gap gap;
  gap.end_ns = 6'000'000;
  gap.top_leaf = HOST_PYTHON;
  gap.thread = "main thread";
  gap.doing = "ProfilerStep#9";
  d.gaps.push_back(gap);
  EXPECT_FALSE(says(report_of(d), "ProfilerStep")) << said(report_of(d));
  d.gaps[0].doing = "validate";
  EXPECT_TRUE(says(report_of(d), "the main thread was in validate")) << said(report_of(d));
}

TEST(Sentences, AnUpperLimitOfHalfPrecisionIsNotInfinite) {
  Diagnosis d = loop(COMPUTE, {{BUSY_COMPUTE, 98}, {DISPATCH, 2}});
  d.devices[0].fp32_matrix_ns =
      static_cast<int64_t>(0.98 * static_cast<double>(d.devices[0].window_ns));
  const std::string text = text_of(report_of(d));
  EXPECT_NE(text.find("(upper limit 12.3x)"), std::string::npos) << text;
}

// Fewer threads do not wake a thread that waits for another program.
TEST(Sentences, AThreadThatSleepsInACallIsNotAskedToUseFewerThreads) {
  Diagnosis d = loop(HOST, {{BUSY_COMPUTE, 5}, {HOST_BLOCKED, 15}});
  EXPECT_TRUE(has(report_of(d), "blocked-thread"));
  diagnose::Gap gap;
  gap.end_ns = 6'000'000;
  gap.top_leaf = HOST_BLOCKED;
  gap.thread = "main thread";
  gap.doing = "forward";
  d.gaps.push_back(gap);
  EXPECT_TRUE(has(report_of(d), "blocked-thread"));
  for (const char* call : {"poll", "epoll_wait", "nanosleep", "recvmsg"}) {
    d.gaps[0].doing = call;
    const Report report = report_of(d);
    EXPECT_FALSE(has(report, "blocked-thread")) << call;
    ASSERT_TRUE(has(report, "blocked-call")) << call;
    const std::string text = text_of(report);
    EXPECT_EQ(text.find("OMP_NUM_THREADS"), std::string::npos) << text;
    EXPECT_NE(text.find(std::string(call) + "()"), std::string::npos) << text;
  }
}

// With a core to be had, a thread that does not run wants a lock, not a core.
TEST(Sentences, AThreadThatWantsALockIsNotAskedToUseFewerThreads) {
  Diagnosis d = loop(HOST, {{BUSY_COMPUTE, 5}, {HOST_BLOCKED, 15}});
  const auto expect_lock = [&](bool lock) {
    const Report report = report_of(d);
    ASSERT_TRUE(has(report, "blocked-thread"));
    const std::string text = text_of(report);
    EXPECT_EQ(text.find("interpreter lock") != std::string::npos, lock) << text;
    EXPECT_EQ(text.find("OMP_NUM_THREADS") == std::string::npos, lock) << text;
    EXPECT_EQ(said(report).find("waited for a lock") != std::string::npos, lock);
  };
  expect_lock(false);  // nothing is known about cores
  d.free_cores = 0.4;
  d.process_cpus = 3;  // its own threads compete
  expect_lock(false);
  d.free_cores = 6;
  expect_lock(true);
  d.process_cpus = 0.2;  // nobody of this process ran meanwhile: it waits for something else
  ASSERT_TRUE(has(report_of(d), "blocked-thread"));
  EXPECT_EQ(text_of(report_of(d)).find("interpreter lock"), std::string::npos);
  EXPECT_EQ(text_of(report_of(d)).find("OMP_NUM_THREADS"), std::string::npos);
  // No core was free, yet the process had one all the time: its threads take turns.
  d.free_cores = 0;
  d.process_cpus = 1.01;
  expect_lock(true);
  read::Recording one_core;
  one_core.processes.emplace_back().header.mutable_process()->set_cpu_count(1);
  EXPECT_NE(text_of(build(d, one_core)).find("OMP_NUM_THREADS"), std::string::npos);
  // Hardly blocked: that the process used one core says nothing.
  d = loop(HOST, {{BUSY_COMPUTE, 5}, {HOST_PYTHON, 15}, {HOST_BLOCKED, 2}});
  d.process_cpus = 1.01;
  EXPECT_NE(text_of(report_of(d)).find("OMP_NUM_THREADS"), std::string::npos);
  d.free_cores = 6;  // nor is there advice for so little
  EXPECT_FALSE(has(report_of(d), "blocked-thread"));
  // A C++ program has no interpreter.
  d = loop(HOST, {{BUSY_COMPUTE, 5}, {HOST_BLOCKED, 15}});
  d.free_cores = 6;
  d.processes.back().python_version.clear();
  EXPECT_EQ(said(report_of(d)).find("interpreter"), std::string::npos);
}

TEST(Sentences, SlowerKernelsAreSaidWhereTheyAreMuchOfTheStep) {
  Diagnosis d = loop(COMPUTE, {{BUSY_COMPUTE, 95}, {DISPATCH, 5}});
  d.devices[0].kernel_drift = 0.13;
  EXPECT_NE(said(report_of(d)).find("13 %"), std::string::npos);
  d = loop(HOST, {{BUSY_COMPUTE, 3}, {HOST_PYTHON, 97}});
  d.devices[0].kernel_drift = 0.13;
  EXPECT_EQ(said(report_of(d)).find("13 %"), std::string::npos);
}

TEST(Sentences, EvaluationIsApartAndOnlyWhereItMatters) {
  Diagnosis d = loop(COMPUTE, {{BUSY_COMPUTE, 98}, {DISPATCH, 2}});
  d.run.end_ns = 100'000'000'000;
  d.phases.push_back({"train", 900, 80'000'000'000, 89'000'000, 9'000'000'000, 0.98, {}, {}});
  EXPECT_FALSE(says(report_of(d), "valuation")) << said(report_of(d));
  diagnose::Phase evaluation{"evaluation", 400, 20'000'000'000, 50'000'000, 2'000'000'000, 0.3,
                             {},           {}};
  evaluation.verdict_shares.push_back({DATA, 0.65, {}, 0});
  evaluation.verdict_shares.push_back({COMPUTE, 0.3, {}, 0});
  d.phases.push_back(evaluation);
  const Report report = report_of(d);
  EXPECT_TRUE(says(report, "Evaluation is not in these numbers: 400 batches, 50 ms a batch"))
      << said(report);
  EXPECT_TRUE(says(report, "the GPU computes 30 % of the time and waits 65 % for the next batch"))
      << said(report);
  expect_complete(report);
  ASSERT_EQ(report.phases_size(), 2);
  EXPECT_EQ(report.phases(1).sentences_size(), 2);
  // Hardly any of the run: no news.
  d.phases[1].total_ns = 1'000'000'000;
  EXPECT_FALSE(says(report_of(d), "valuation")) << said(report_of(d));
}

TEST(Sentences, BusBandwidthSaysWhetherWaitingIsInIt) {
  Diagnosis d = loop(COMM, {{BUSY_COMPUTE, 50}, {COMM_TRANSFER, 50}});
  diagnose::CollectiveSummary collective;
  collective.name = "AllReduce";
  collective.ranks = 8;
  collective.bus_gb_per_s = 212.4;
  d.collectives.push_back(collective);
  EXPECT_TRUE(says(report_of(d), "AllReduce over 8 ranks moves 212 GB/s on the bus"))
      << said(report_of(d));
  d.collectives[0].one_rank = true;
  EXPECT_TRUE(says(report_of(d), "moves at least 212 GB/s")) << said(report_of(d));
}

}  // namespace
}  // namespace idlescope::report
