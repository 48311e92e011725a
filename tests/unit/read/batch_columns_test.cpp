// Times written as changes (format 1.1), and overheads in columns.
#include "analysis/read/batch_columns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "analysis/read/recording.h"
#include "analysis/read/text_trace.h"
#include "analysis/read/trace_reader.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

Recording read_text(const std::string& batches) {
  const auto bytes = serialize_text_trace(R"(
packet { header { format_major: 1 format_minor: 1 process { host: "n" pid: 5 } } }
packet { descriptors { gpu_op { id: 1 kind: OP_KERNEL } gpu_op { id: 2 kind: OP_KERNEL }
                       gpu_op { id: 1025 kind: OP_KERNEL } } }
packet { window_begin { window_id: 1 begin_ns: 1 kinds: KIND_KERNEL } }
)" + batches,
                                          "x.txtpb");
  EXPECT_TRUE(bytes);
  Recording recording;
  const auto done = read_trace(*bytes, "x.istrace", recording);
  EXPECT_TRUE(done) << done.error().text();
  return recording;
}

uint64_t uneven(const Recording& recording) {
  uint64_t count = 0;
  for (const Anomaly& entry : recording.anomalies) {
    if (entry.message.id == messages::kTraceColumnsUneven.id) count += entry.count;
  }
  return count;
}

TEST(BatchColumns, AnOpIsLikeTheLastOneOfItsKind) {
  // 1 and 1025 are of a kind. Gaps 5, 7, 6, 9 and durations 10, 100, 12, 11.
  const Recording recording = read_text(R"(
packet { gpu_ops { window_id: 1 base_ns: 1000 descriptor_id: [1, 2, 1, 1025]
                   gap_change_ns: [5, 7, 1, 3] duration_change_ns: [10, 100, 2, -1]
                   correlation_delta: [1, 1, 1, 1] } })");
  const auto& ops = recording.processes[0].ops;
  ASSERT_EQ(ops.size(), 4u);
  const Ns expected[4][2] = {{1005, 1015}, {1022, 1122}, {1128, 1140}, {1149, 1160}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ops[i].begin_ns, expected[i][0]) << i;
    EXPECT_EQ(ops[i].end_ns, expected[i][1]) << i;
  }
  EXPECT_EQ(uneven(recording), 0u);
}

TEST(BatchColumns, OpsMayOverlap) {
  const Recording recording = read_text(R"(
packet { gpu_ops { window_id: 1 base_ns: 1000 descriptor_id: [1, 2] gap_change_ns: [0, -60]
                   duration_change_ns: [100, 20] correlation_delta: [1, 1] } })");
  ASSERT_EQ(recording.processes[0].ops.size(), 2u);
  EXPECT_EQ(recording.processes[0].ops[1].begin_ns, 1040);
  EXPECT_EQ(recording.processes[0].ops[1].end_ns, 1060);
}

TEST(BatchColumns, WhatIsThereInFullIsKept) {
  const Recording recording = read_text(R"(
packet { gpu_ops { window_id: 1 base_ns: 1000 descriptor_id: [1, 1, 1] gap_change_ns: [5, 0, 0]
                   duration_change_ns: [10, 0] correlation_delta: [1, 1, 1] } }
packet { gpu_ops { window_id: 1 base_ns: 2000 descriptor_id: [1, 1] gap_change_ns: [5]
                   duration_change_ns: [10, 0] correlation_delta: [4, 1] } }
packet { overheads { window_id: 1 base_ns: 100 kind: [1, 1] thread_id: [5, 5] gap_ns: [0, 10]
                     duration_ns: [3] correlation_delta: [1, 1] } })");
  EXPECT_EQ(recording.processes[0].ops.size(), 3u);
  EXPECT_EQ(recording.processes[0].overheads.size(), 1u);
  EXPECT_EQ(uneven(recording), 3u);
}

TEST(BatchColumns, DamagedChangesMayWrapAndAreCounted) {
  const Recording recording = read_text(R"(
packet { gpu_ops { window_id: 1 base_ns: 9223372036854775807 descriptor_id: [1, 1, 1]
                   gap_change_ns: [9223372036854775807, 9223372036854775807, 1]
                   duration_change_ns: [-9223372036854775808, 9223372036854775807, -1]
                   correlation_delta: [2147483647, 2147483647, 2147483647] } }
packet { overheads { window_id: 1 base_ns: 9223372036854775807 kind: [6, 6] thread_id: [1, 1]
                     gap_ns: [-9223372036854775808, 1] duration_ns: [18446744073709551615, 1]
                     correlation_delta: [-2147483648, -2147483648] } })");
  uint64_t reversed = 0;
  for (const Anomaly& entry : recording.anomalies) {
    if (entry.message.id == messages::kTraceTimeReversed.id) reversed += entry.count;
  }
  const auto& process = recording.processes[0];
  EXPECT_EQ(process.ops.size() + process.overheads.size() + reversed, 5u);
}

TEST(BatchColumns, OverheadsInColumns) {
  trace::OverheadBatch batch;
  batch.set_base_ns(1000);
  const struct {
    trace::OverheadKind kind;
    uint32_t thread;
    int64_t begin, end;
    uint32_t correlation;
  } expected[] = {{trace::OVERHEAD_COMMAND_BUFFER_FULL, 7, 1000, 1500, 12},
                  {trace::OVERHEAD_BUFFER_FLUSH, 0, 1400, 1410, 0}};
  for (const auto& [kind, thread, gap, duration, correlation] :
       {std::tuple{trace::OVERHEAD_COMMAND_BUFFER_FULL, 7u, 0, 500u, 12},
        std::tuple{trace::OVERHEAD_BUFFER_FLUSH, 0u, -100, 10u, -12}}) {
    batch.add_kind(kind);
    batch.add_thread_id(thread);
    batch.add_gap_ns(gap);
    batch.add_duration_ns(duration);
    batch.add_correlation_delta(correlation);
  }
  EXPECT_TRUE(use_plain_overheads(batch));
  ASSERT_EQ(batch.overhead_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(batch.overhead(i).kind(), expected[i].kind);
    EXPECT_EQ(batch.overhead(i).thread_id(), expected[i].thread);
    EXPECT_EQ(batch.overhead(i).begin_ns(), expected[i].begin);
    EXPECT_EQ(batch.overhead(i).end_ns(), expected[i].end);
    EXPECT_EQ(batch.overhead(i).correlation_id(), expected[i].correlation);
  }
  EXPECT_EQ(batch.kind_size(), 0);
}

}  // namespace
}  // namespace idlescope::read
