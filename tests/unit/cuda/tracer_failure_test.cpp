// CUPTI that fails, is taken, is old or loses records: reported, undone, counted.
#include "profiler/cuda/activity_buffers.h"
#include "tests/unit/cuda/tracer_fixture.h"

namespace idlescope::cuda {
namespace {

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

}  // namespace
}  // namespace idlescope::cuda
