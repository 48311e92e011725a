// Diagnosis to Report: which sentences and which advice each verdict carries, by the accept
// and forbid lists of the scenarios.
#include "analysis/report/build.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "proto/messages.h"
#include "tests/unit/report/diagnosis_fixture.h"

namespace idlescope::report {
namespace {

int workers_of(const Report& report) {
  for (const Fix& fix : report.fixes()) {
    if (fix.id() == "num-workers") return std::stoi(fix.parameters().at("num_workers"));
  }
  return -1;
}

TEST(Build, S01LoaderInline) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 12}});
  add_loader(&d, 0, 20, LIMITER_SERIAL);
  const Report report = report_of(d);
  ASSERT_FALSE(report.fixes().empty());
  EXPECT_EQ(report.fixes(0).id(), "num-workers");
  EXPECT_GE(workers_of(report), 2);
  EXPECT_EQ(report.fixes(0).site(), "train.py:41");
  EXPECT_FALSE(has(report, "larger-batch"));
  EXPECT_FALSE(has(report, "cache"));
  EXPECT_NE(said(report).find("The main process prepares every batch itself (0 workers)"),
            std::string::npos)
      << said(report);
  expect_complete(report);
}

// What the recorder itself said about the run is in the report.
TEST(Build, TroubleOfTheRecorderIsALimit) {
  const auto limits = [](Diagnosis d, trace::Status::State state, const char* id,
                         const char* detail) {
    read::Recording recording;
    trace::Status* status = &recording.processes.emplace_back().statuses.emplace_back();
    status->set_state(state);
    status->set_message_id(id);
    status->set_detail(detail);
    return said(build(d, recording));
  };
  const Diagnosis d = loop(LAUNCH, {{BUSY_COMPUTE, 10}, {LAUNCH_LEAF, 12}});
  const auto recording = trace::Status::STATE_RECORDING;
  EXPECT_NE(limits(d, recording, "limit-stays-threads", "").find("several threads launch"),
            std::string::npos);
  EXPECT_NE(limits(d, recording, "limit-stays-graphs", "").find("CUDA graphs"), std::string::npos);
  EXPECT_EQ(limits(d, recording, "", "").find("stayed attached"), std::string::npos);
  Diagnosis host_only;
  host_only.chosen_process = 0;
  const std::string permission = limits(host_only, trace::Status::STATE_HOST_ONLY,
                                        "cupti-permission", "INSUFFICIENT_PRIVILEGES");
  EXPECT_NE(permission.find("the GPU was not recorded: INSUFFICIENT_PRIVILEGES"), std::string::npos)
      << permission;
}

TEST(Build, S02LoaderStarvedNamesAWorkingNumber) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  add_loader(&d, 2, 60, LIMITER_WORKERS);
  const Report report = report_of(d);
  EXPECT_EQ(report.fixes(0).id(), "num-workers");
  EXPECT_GE(workers_of(report), 6);
  EXPECT_LE(workers_of(report), 12);
  EXPECT_FALSE(has(report, "prefetch-factor"));
  EXPECT_FALSE(has(report, "pin-non-blocking"));
  EXPECT_NEAR(report.fixes(0).ceiling_speedup(), 3.0, 0.01);
  EXPECT_FALSE(report.fixes(0).has_forecast());
  expect_complete(report);
}

TEST(Build, S03IoWaitGoesBeyondTheCores) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_REMOTE, 70}});
  add_loader(&d, 4, 320, LIMITER_WORKERS, 8);
  d.loader.fetch_blocked_share = 0.97;
  d.loader.fetch_cpu_share = 0.03;
  const Report report = report_of(d);
  EXPECT_EQ(report.fixes(0).id(), "num-workers");
  EXPECT_GT(workers_of(report), 8);
  EXPECT_TRUE(has(report, "cache"));
  EXPECT_FALSE(has(report, "cheaper-prepare"));
  EXPECT_EQ(text_of(report).find("for the disk"), std::string::npos);
  expect_complete(report);
  d.limiter = LIMITER_REMOTE;
  EXPECT_NE(said(report_of(d)).find("network or another program"), std::string::npos)
      << said(report_of(d));
}

// Workers that wait for each other (one lock around the file) or for one full link.
TEST(Build, MoreWorkersAreNotFirstWhereMoreOfThemMoveNoMore) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_REMOTE, 70}});
  for (const Limiter limiter : {LIMITER_REMOTE, LIMITER_STORAGE}) {
    add_loader(&d, 4, 320, limiter, 8);
    d.loader.fetch_blocked_share = 0.6;
    EXPECT_EQ(report_of(d).fixes(0).id(), "cache");
    EXPECT_TRUE(has(report_of(d), "num-workers"));
  }
}

TEST(Build, S05EpochRespawn) {
  Diagnosis d = loop(STARTUP, {{BUSY_COMPUTE, 10}, {DATA_STARTUP, 0.05}});
  add_loader(&d, 8, 20, LIMITER_STARTUP);
  d.ledger = LEDGER_RUN;
  d.loader.start_method = "spawn";
  d.run.begin_ns = 0;
  d.run.end_ns = 30'000'000'000;
  d.run.epochs = 5;
  d.run.epoch_restart_ns = 16'000'000'000;
  const Report report = report_of(d);
  EXPECT_EQ(report.fixes(0).id(), "persistent-workers");
  EXPECT_TRUE(has(report, "start-method"));
  EXPECT_FALSE(has(report, "num-workers"));
  EXPECT_FALSE(has(report, "cheaper-prepare"));
  EXPECT_NE(said(report).find("Each of 5 epochs starts with 3.2 s of waiting"), std::string::npos)
      << said(report);
  expect_complete(report);
}

TEST(Build, S06PageableCopy) {
  Diagnosis d = loop(TRANSFER, {{BUSY_COMPUTE, 10}, {BUSY_COPY_EXPOSED, 20}, {XFER_PAGEABLE, 5}});
  add_loader(&d, 8, 1, LIMITER_UNSPECIFIED);
  d.copies.push_back({"H2D pageable", 100, 15'400'000'000, 2'000'000'000, 2'000'000'000, 0});
  const Report report = report_of(d);
  EXPECT_EQ(report.fixes(0).id(), "pin-non-blocking");
  EXPECT_TRUE(has(report, "uint8"));
  EXPECT_FALSE(has(report, "num-workers"));
  EXPECT_FALSE(has(report, "larger-batch"));
  EXPECT_NE(said(report).find("Mostly H2D pageable: 154 MB a step at 7.7 GB/s."), std::string::npos)
      << said(report);
  expect_complete(report);
}

TEST(Build, S07PinnedButSerialIsNotToldToPin) {
  Diagnosis d = loop(TRANSFER, {{BUSY_COMPUTE, 10}, {BUSY_COPY_EXPOSED, 7}});
  d.copies.push_back({"H2D pinned", 100, 15'400'000'000, 700'000'000, 700'000'000, 0});
  const Report report = report_of(d);
  EXPECT_EQ(report.fixes(0).id(), "prefetch-stream");
  EXPECT_FALSE(has(report, "pin-non-blocking"));
  expect_complete(report);
}

TEST(Build, S07OverlappedAlreadyIsNotToldToOverlap) {
  Diagnosis d = loop(TRANSFER, {{BUSY_COMPUTE, 10}, {BUSY_COPY_EXPOSED, 1}});
  d.copies.push_back({"H2D pinned", 100, 15'400'000'000, 700'000'000, 100'000'000, 0});
  const Report report = report_of(d);
  EXPECT_FALSE(has(report, "prefetch-stream"));
  EXPECT_EQ(report.fixes(0).id(), "uint8");
}

TEST(Build, S09TinyBatch) {
  Diagnosis d = loop(LAUNCH, {{BUSY_COMPUTE, 0.5}, {LAUNCH_LEAF, 1.6}, {DISPATCH, 0.2}});
  add_loader(&d, 2, 0.1, LIMITER_UNSPECIFIED);
  d.loader.batch_size = 8;
  d.devices[0].median_kernel_ns = 4000;
  d.devices[0].median_launch_interval_ns = 20000;
  d.devices[0].fill = 0.02;
  d.devices[0].launch_bound = true;
  const Report report = report_of(d);
  EXPECT_TRUE(has(report, "cuda-graph"));
  EXPECT_TRUE(has(report, "larger-batch"));
  EXPECT_FALSE(has(report, "num-workers"));
  EXPECT_FALSE(has(report, "pin-non-blocking"));
  const std::string text = text_of(report);
  EXPECT_NE(text.find("The batch of 8 is too small for this GPU."), std::string::npos) << text;
  EXPECT_NE(text.find("the loader was never waited for"), std::string::npos) << text;
  expect_complete(report);
}

TEST(Build, GraphsAreNotAdvisedToAJobThatRunsInsideThem) {
  Diagnosis d = loop(LAUNCH, {{BUSY_COMPUTE, 0.5}, {LAUNCH_LEAF, 1.6}});
  d.devices[0].ops_in_graphs = 0.9;
  d.devices[0].fill = 0.1;
  EXPECT_FALSE(has(report_of(d), "cuda-graph"));
}

TEST(Build, S10OptimizerLoop) {
  Diagnosis d = loop(LAUNCH, {{BUSY_COMPUTE, 20}, {LAUNCH_LEAF, 80}});
  d.devices[0].fill = 0.1;
  read::Recording recording;
  recording.processes.emplace_back();
  read::Process& process = recording.processes[0];
  read::CallDescriptor launch;
  launch.call_class = trace::CALL_LAUNCH;
  launch.thread_id = 7;
  process.call_descriptors.push_back(launch);
  read::HostEvent range;
  range.kind = trace::EVENT_RANGE;
  range.thread_id = 7;
  range.begin_ns = 1000;
  range.end_ns = 2000;
  range.b = trace::RANGE_OPTIMIZER;
  process.host_events.push_back(range);
  for (int i = 0; i < 10; ++i) {
    read::Call call;
    call.begin_ns = i < 2 ? 100 * i : 1000 + 100 * i;  // eight inside
    call.end_ns = call.begin_ns + 5;
    process.calls.push_back(call);
  }
  const Report report = build(d, recording);
  EXPECT_DOUBLE_EQ(report.launch_optimizer_share(), 0.8);
  EXPECT_EQ(report.fixes(0).id(), "fused-optimizer");
  EXPECT_EQ(report.fixes(0).code(), "optim.Adam(..., fused=True), or foreach=True");
  EXPECT_FALSE(has(report, "larger-batch"));
  expect_complete(report);
  // What it uses already is not advised again.
  read::OpDescriptor update;
  update.kind = trace::OP_KERNEL;
  update.name = recording.strings.add("multi_tensor_apply_kernel<TensorListMetadata<4>, Lerp>");
  recording.processes[0].op_descriptors.push_back(update);
  EXPECT_EQ(build(d, recording).fixes(0).code(), "optim.Adam(..., fused=True)");
  update.name = recording.strings.add(
      "multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor>");
  recording.processes[0].op_descriptors.push_back(update);
  EXPECT_FALSE(has(build(d, recording), "fused-optimizer"));
}

// Policy gradient that reads an action after every few kernels: no graph holds such a step.
TEST(Build, AGraphOfAStepThatWaitsAllTheTimeIsNotTheFirstAdvice) {
  Diagnosis d = loop(LAUNCH, {{BUSY_COMPUTE, 4}, {LAUNCH_LEAF, 40}, {SYNC_SCALAR, 3}});
  d.devices[0].launch_bound = true;
  EXPECT_EQ(report_of(d).fixes(0).id(), "cuda-graph");
  EXPECT_EQ(report_of(d).fixes(0).text().id(), "fix-cuda-graph");
  d.devices[0].launches_between_waits = 0.3;
  d.devices[0].waits_per_step = 200;
  const Report report = report_of(d);
  EXPECT_EQ(report.fixes(0).id(), "larger-batch");
  ASSERT_TRUE(has(report, "cuda-graph"));
  EXPECT_NE(text_of(report).find("once its 200 waits"), std::string::npos) << text_of(report);
  // Nothing else is to be had: the advice stays, with what must come before it.
  d.devices[0].launch_bound = false;
  d.devices[0].fill = 0.9;
  EXPECT_EQ(report_of(d).fixes(0).id(), "cuda-graph");
  expect_complete(report);
}

// NumPy augmentation in the loop, beside a small net.
TEST(Build, TheLargerPartOfHostTimeIsAdvisedFirstAndNoGraphReplacesIt) {
  Diagnosis d =
      loop(HOST, {{BUSY_COMPUTE, 0.3}, {HOST_PYTHON, 20}, {HOST_BLOCKED, 1}, {LAUNCH_LEAF, 2}});
  const Report report = report_of(d);
  ASSERT_GE(report.fixes_size(), 2);
  EXPECT_EQ(report.fixes(0).id(), "host-code");
  for (const Fix& fix : report.fixes()) {
    if (fix.id() == "cuda-graph") {
      EXPECT_LT(fix.ceiling_speedup(), 1.2);
    }
  }
  // The other way round.
  d = loop(HOST, {{BUSY_COMPUTE, 10}, {HOST_BLOCKED, 20}, {HOST_PYTHON, 1}});
  EXPECT_EQ(report_of(d).fixes(0).id(), "blocked-thread");
}

TEST(Build, S12StragglerNeverBlamesTheNetwork) {
  Diagnosis d = loop(COMM, {{BUSY_COMPUTE, 10}, {COMM_STRAGGLER, 20}});
  d.ranks.resize(2);
  d.ranks[1].rank = 1;
  d.ranks[1].last_share = 0.97;
  d.ranks[1].guilty_leaf = DATA_CPU;
  d.ranks[1].guilty_ns = 19 * kMs;
  const Report report = report_of(d);
  ASSERT_EQ(ids(report), std::vector<std::string>{"straggler"});
  EXPECT_NE(said(report).find("Rank 1 arrives last in 97 % of the collectives"), std::string::npos)
      << said(report);
  EXPECT_EQ(text_of(report).find("network"), std::string::npos);
  expect_complete(report);

  d.ranks.clear();
  const Report one = report_of(d);
  EXPECT_EQ(ids(one), std::vector<std::string>{"all-ranks"});
  EXPECT_NE(said(one).find("not decidable from one rank"), std::string::npos) << said(one);
}

TEST(Build, T1BusyButEmpty) {
  Diagnosis d = loop(UNDERFILLED, {{BUSY_COMPUTE, 20}, {DISPATCH, 0.1}});
  d.devices[0].fill = 0.0167;
  const Report report = report_of(d);
  ASSERT_EQ(ids(report), std::vector<std::string>{"larger-batch"});
  EXPECT_NEAR(report.fixes(0).ceiling_speedup(), 60, 0.5);
  expect_complete(report);
}

TEST(Build, T2HealthyHasNoFixWorthTheTime) {
  Diagnosis d = loop(COMPUTE, {{BUSY_COMPUTE, 53}, {LAUNCH_LEAF, 0.8}, {HOST_PYTHON, 0.7}});
  add_loader(&d, 8, 50, LIMITER_UNSPECIFIED);
  d.not_it.push_back(
      {diagnose::NotIt::What::kLaunch, "cudaLaunchKernel", 19 * kMs, 0.2 * kMs, true});
  const Report report = report_of(d);
  EXPECT_TRUE(report.fixes().empty());
  const std::string text = text_of(report);
  EXPECT_NE(text.find("FIXES    None worth your time."), std::string::npos) << text;
  EXPECT_NE(text.find("at most 1.03x"), std::string::npos) << text;
  EXPECT_NE(text.find("they wait because the GPU is full"), std::string::npos) << text;
  EXPECT_TRUE(report.check_command().empty());
  expect_complete(report);
}

TEST(Build, NoFixBelowTwoPercent) {
  Diagnosis d = loop(COMPUTE, {{BUSY_COMPUTE, 98.1}, {DATA_CPU, 1.9}});
  add_loader(&d, 2, 60, LIMITER_WORKERS);
  EXPECT_TRUE(report_of(d).fixes().empty());
  d = loop(COMPUTE, {{BUSY_COMPUTE, 97.9}, {DATA_CPU, 2.1}});
  add_loader(&d, 2, 250, LIMITER_WORKERS);
  EXPECT_TRUE(has(report_of(d), "num-workers"));
}

TEST(Build, CoresExhaustedShardsMissingOrInMemory) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  add_loader(&d, 2, 60, LIMITER_CORES, 2);
  d.loader.frames.push_back({"data.py:88 augment", 0.7});
  Report report = report_of(d);
  EXPECT_FALSE(has(report, "num-workers"));
  EXPECT_EQ(report.fixes(0).id(), "cheaper-prepare");
  EXPECT_EQ(report.fixes(0).site(), "data.py:88");
  expect_complete(report);

  add_loader(&d, 16, 60, LIMITER_SHARDS);
  d.loader.empty_workers = 10;
  report = report_of(d);
  EXPECT_EQ(ids(report)[0], "shards");
  EXPECT_FALSE(has(report, "num-workers"));
  EXPECT_NE(said(report).find("10 of 16 loader workers have no shard to read."), std::string::npos)
      << said(report);

  add_loader(&d, 0, 2, LIMITER_SERIAL);
  d.loader.samples_mean = 256;
  d.loader.fetch_bytes_mean = -1;
  report = report_of(d);
  EXPECT_EQ(ids(report), std::vector<std::string>{"batch-index"});
  EXPECT_NE(said(report).find("256 Python calls a step"), std::string::npos) << said(report);

  add_loader(&d, 2, 60, LIMITER_WORKERS, 2);  // workers busy, but no core is left
  EXPECT_FALSE(has(report_of(d), "num-workers"));
}

TEST(Build, FrameworkWords) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  add_loader(&d, 0, 25, LIMITER_SERIAL);
  d.loader.site = "finetune.py:12";
  d.loader.inner_site = "/venv/lib/python3.11/site-packages/transformers/trainer.py:1021";
  const Report report = report_of(d);
  EXPECT_EQ(report.fixes(0).code(), "TrainingArguments(dataloader_num_workers=3)");
  EXPECT_EQ(report.fixes(0).site(), "finetune.py:12");
}

TEST(Build, SitesAreRelativeToTheJob) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  add_loader(&d, 0, 25, LIMITER_SERIAL);
  read::Recording recording;
  recording.processes.emplace_back();
  recording.processes[0].header.mutable_process()->set_working_directory("/home/me/job");
  d.loader.site = "/home/me/job/src/train.py:41 loop";
  EXPECT_EQ(build(d, recording).fixes(0).site(), "src/train.py:41");
  d.loader.site = "/opt/lib/other.py:7 <module>";
  EXPECT_EQ(build(d, recording).fixes(0).site(), "other.py:7");
}

TEST(Build, CheckSaysHowOnALineOfItsOwn) {
  Diagnosis d = loop(DATA, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  add_loader(&d, 0, 25, LIMITER_SERIAL);
  read::Recording recording;
  recording.paths = {"run7"};
  EXPECT_NE(
      text_of(build(d, recording))
          .find("CHECK    change it, record again, then:\n         idlescope compare run7 NEW\n"),
      std::string::npos)
      << text_of(build(d, recording));
}

TEST(Build, LaunchWithHostIsOneSentence) {
  Diagnosis d = loop(LAUNCH, {{BUSY_COMPUTE, 1}, {LAUNCH_LEAF, 2}, {HOST_PYTHON, 1.8}});
  d.verdict_shares.push_back({HOST, 0.37, {}, 1.8 * kMs});
  EXPECT_EQ(report_of(d).sentences(0).id(), "verdict-launch-host");
}

TEST(Build, CannotTellSaysWhyAndOffersNothing) {
  Diagnosis d = loop(CANNOT_TELL, {{BUSY_COMPUTE, 10}, {DATA_CPU, 20}});
  add_loader(&d, 0, 25, LIMITER_SERIAL);
  d.certainty = CANNOT_TELL_YET;
  d.reason = diagnose::Reason::kFewSteps;
  d.step.steady_steps = 12;
  const Report report = report_of(d);
  EXPECT_TRUE(report.fixes().empty());
  EXPECT_NE(said(report).find("12 steady steps were recorded; a verdict needs 20"),
            std::string::npos)
      << said(report);
  expect_complete(report);
  for (int reason = 0; reason <= static_cast<int>(diagnose::Reason::kImport); ++reason) {
    d.reason = static_cast<diagnose::Reason>(reason);
    expect_complete(report_of(d));
  }
}

TEST(Build, HostOnlyTellsTheLoaderWait) {
  Diagnosis d;
  d.verdict = CANNOT_TELL;
  d.certainty = CANNOT_TELL_YET;
  d.reason = diagnose::Reason::kNoDevice;
  d.run.mean_step_ns = 50 * kMs;
  d.run.loader_wait_share = 0.6;
  d.step.run_steps = 40;
  add_loader(&d, 0, 30, LIMITER_SERIAL);
  const Report report = report_of(d);
  const std::string text = text_of(report);
  EXPECT_NE(text.find("of each 50 ms step 30 ms (60 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("LIMITS   40 steps, host side only"), std::string::npos) << text;
  expect_complete(report);
}

TEST(Build, EveryVerdictWithNothingButItsNameIsComplete) {
  for (int verdict = Verdict_MIN; verdict <= Verdict_MAX; ++verdict) {
    Diagnosis empty;
    empty.verdict = static_cast<Verdict>(verdict);
    expect_complete(report_of(empty));
    expect_complete(report_of(loop(static_cast<Verdict>(verdict), {{BUSY_COMPUTE, 10}})));
  }
}

TEST(Words, EveryLeafVerdictAndRowHasWords) {
  for (int leaf = Leaf_MIN + 1; leaf <= Leaf_MAX; ++leaf) {
    if (!Leaf_IsValid(leaf)) continue;
    EXPECT_NE(leaf_words(static_cast<Leaf>(leaf)).id, messages::kWordUnknown.id)
        << Leaf_Name(static_cast<Leaf>(leaf));
  }
  for (int verdict = Verdict_MIN + 1; verdict <= Verdict_MAX; ++verdict) {
    EXPECT_NE(verdict_words(static_cast<Verdict>(verdict)).id, messages::kWordUnknown.id);
    if (verdict == UNDERFILLED) continue;  // has no leaves, so no row
    EXPECT_NE(row_words(static_cast<Verdict>(verdict)).id, messages::kWordUnknown.id);
  }
}

}  // namespace
}  // namespace idlescope::report
