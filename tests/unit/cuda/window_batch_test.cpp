// What WindowBatch writes, read back by the words of trace.proto.
#include "profiler/emit/window_batch.h"

#include <random>
#include <vector>

#include "tests/unit/cuda/recorded_packets.h"

namespace idlescope::cuda {
namespace {

class WindowBatchTest : public WithPackets {};

emit::GpuOp op(uint32_t name, int64_t begin_ns, int64_t end_ns, uint32_t correlation) {
  emit::GpuOp out;
  memset(static_cast<void*>(&out), 0, sizeof out);
  out.key.kind = emit::kOpKernel;
  out.key.name_id = name;
  out.begin_ns = begin_ns;
  out.end_ns = end_ns;
  out.correlation_id = correlation;
  return out;
}

TEST_F(WindowBatchTest, TimesComeBackWhateverTheOrder) {
  std::mt19937_64 random(7);
  std::vector<emit::GpuOp> written;
  emit::WindowBatch batch(&record_packet);
  batch.start_window(3);
  int64_t at = 5'000'000'000'000;
  for (uint32_t i = 0; i < 5000; ++i) {
    // 3000 kinds, more than the form of the times tells apart; some ops overlap, some go back.
    at += static_cast<int64_t>(random() % 100'000) - (i % 50 == 0 ? 90'000 : 0);
    written.push_back(op(static_cast<uint32_t>(random() % 3000) + 1, at,
                         at + static_cast<int64_t>(random() % 1'000'000),
                         static_cast<uint32_t>(random())));
    ASSERT_TRUE(batch.add_op(written.back()));
    if (i == 3333) {
      ASSERT_TRUE(batch.flush());
    }
  }
  ASSERT_TRUE(batch.flush());
  const std::vector<OpRow> read = packets_.ops();
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) {
    ASSERT_EQ(read[i].begin_ns, written[i].begin_ns) << i;
    ASSERT_EQ(read[i].end_ns, written[i].end_ns) << i;
    ASSERT_EQ(read[i].correlation, written[i].correlation_id) << i;
    ASSERT_EQ(read[i].what.name_id(), written[i].key.name_id) << i;
    ASSERT_EQ(read[i].window, 3u);
  }
}

TEST_F(WindowBatchTest, OverheadsAreColumns) {
  const emit::OverheadSpan spans[] = {
      {1000, 1500, 6, 77, 12}, {1400, 1450, 2, 0, 0}, {900, 2900, 6, 78, 4'000'000'000}};
  emit::WindowBatch batch(&record_packet);
  batch.start_window(2);
  for (const emit::OverheadSpan& span : spans) ASSERT_TRUE(batch.add_overhead(span));
  ASSERT_TRUE(batch.flush());
  const auto packets = packets_.of(trace::Packet::kOverheads);
  ASSERT_EQ(packets.size(), 1u);
  const trace::OverheadBatch& read = packets[0].overheads();
  EXPECT_EQ(read.window_id(), 2u);
  ASSERT_EQ(read.kind_size(), 3);
  ASSERT_EQ(read.gap_ns_size(), 3);
  int64_t at = read.base_ns();
  uint32_t correlation = 0;
  for (int i = 0; i < 3; ++i) {
    at += read.gap_ns(i);
    correlation += static_cast<uint32_t>(read.correlation_delta(i));
    EXPECT_EQ(at, spans[i].begin_ns);
    at += static_cast<int64_t>(read.duration_ns(i));
    EXPECT_EQ(at, spans[i].end_ns);
    EXPECT_EQ(static_cast<uint32_t>(read.kind(i)), spans[i].kind);
    EXPECT_EQ(read.thread_id(i), spans[i].thread_id);
    EXPECT_EQ(correlation, spans[i].correlation_id);
  }
}

// A step of kernels that is repeated, as training does: what the format is made for.
TEST_F(WindowBatchTest, ARepeatedStepIsSmall) {
  std::mt19937_64 random(11);
  const auto noise = [&](int64_t of) {
    return of + static_cast<int64_t>(random() % static_cast<uint64_t>(1 + of / 50));
  };
  std::vector<int64_t> durations;
  for (int i = 0; i < 900; ++i)
    durations.push_back(1000 + static_cast<int64_t>(random() % 500'000));
  emit::WindowBatch batch(&record_packet);
  batch.start_window(1);
  int64_t at = 1'000'000'000;
  uint32_t correlation = 0;
  for (int step = 0; step < 20; ++step) {
    for (uint32_t i = 0; i < durations.size(); ++i) {
      const int64_t begin = at + noise(1200);
      at = begin + noise(durations[i]);
      ASSERT_TRUE(batch.add_op(op(i + 1, begin, at, ++correlation)));
    }
  }
  ASSERT_TRUE(batch.flush());
  const double each = static_cast<double>(batch.packet_bytes()) / correlation;
  EXPECT_LT(each, 4.0) << "bytes an op";
}

}  // namespace
}  // namespace idlescope::cuda
