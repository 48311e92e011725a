#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/host/counter_batch.h"
#include "profiler/host/process_counters.h"
#include "profiler/host/worker_clock.h"
#include "tests/unit/emit/recorded_file.h"

namespace idlescope::host {
namespace {

class CountersTest : public emit::RecordedFile {
 protected:
  void configure() const {
    strcpy(emit::identity().host, "test-host");
    emit::configure_trace_file({output_.c_str(), 0, false}, nullptr);
  }
  static std::vector<trace::CounterSample> samples(const trace::Trace& file) {
    std::vector<trace::CounterSample> out;
    for (const trace::Packet& packet : file.packet()) {
      for (const auto& sample : packet.counters().sample()) out.push_back(sample);
    }
    return out;
  }
};

TEST_F(CountersTest, ABatchKeepsWhatCouldBeRead) {
  EXPECT_EQ(in_child([&] {
              configure();
              CounterBatch batch;
              EXPECT_FALSE(batch.write());
              batch.add(CounterKind::kRssBytes, 5, 100);
              batch.add(CounterKind::kCgroupCpuNs, 5, -1);
              batch.add(CounterKind::kNvmlPowerMw, 6, 0, 3);
              EXPECT_TRUE(batch.write());
              EXPECT_FALSE(batch.write());
            }),
            0);
  const auto got = samples(parsed(files().at(0)));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].kind(), trace::COUNTER_RSS_BYTES);
  EXPECT_EQ(got[0].value(), 100);
  EXPECT_EQ(got[1].kind(), trace::COUNTER_NVML_POWER_MW);
  EXPECT_EQ(got[1].device_id_plus_1(), 3u);
  EXPECT_EQ(got[1].time_ns(), 6);
}

TEST_F(CountersTest, OneSampleAPeriod) {
  EXPECT_EQ(in_child([&] {
              configure();
              EXPECT_TRUE(sample_process_counters(10 * kCounterPeriodNs));
              EXPECT_FALSE(sample_process_counters(10 * kCounterPeriodNs + 1));
              EXPECT_FALSE(sample_process_counters(11 * kCounterPeriodNs - 1));
              EXPECT_TRUE(sample_process_counters(11 * kCounterPeriodNs));
            }),
            0);
  std::map<int, int> kinds;
  for (const auto& sample : samples(parsed(files().at(0)))) ++kinds[sample.kind()];
  EXPECT_EQ(kinds[trace::COUNTER_PROCESS_CPU_NS], 2);
  EXPECT_EQ(kinds[trace::COUNTER_TREE_CPU_NS], 2);
  EXPECT_EQ(kinds[trace::COUNTER_RSS_BYTES], 2);
}

// The CPU of a worker counts while it lives and after it was waited for, once.
TEST_F(CountersTest, TheTreeHoldsItsWorkers) {
  EXPECT_EQ(in_child([&] {
              configure();
              int go[2];
              int done[2];
              ASSERT_EQ(pipe(go), 0);
              ASSERT_EQ(pipe(done), 0);
              const pid_t worker = fork();
              if (worker == 0) {
                while (thread_cpu_ns() < 100'000'000) {
                }
                char byte = 'x';
                ssize_t moved = write(done[1], &byte, 1);
                moved += read(go[0], &byte, 1);
                _exit(moved == 2 ? 0 : 1);
              }
              worker_process_started(worker);
              char byte = 0;
              ASSERT_EQ(read(done[0], &byte, 1), 1);
              EXPECT_TRUE(sample_process_counters(kCounterPeriodNs));
              ASSERT_EQ(write(go[1], "x", 1), 1);
              waitpid(worker, nullptr, 0);
              EXPECT_TRUE(sample_process_counters(2 * kCounterPeriodNs));
            }),
            0);
  std::vector<int64_t> own;
  std::vector<int64_t> tree;
  for (const auto& sample : samples(parsed(files().at(0)))) {
    if (sample.kind() == trace::COUNTER_PROCESS_CPU_NS) own.push_back(sample.value());
    if (sample.kind() == trace::COUNTER_TREE_CPU_NS) tree.push_back(sample.value());
  }
  ASSERT_EQ(own.size(), 2u);
  ASSERT_EQ(tree.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_GE(tree[i] - own[i], 95'000'000) << i;
    EXPECT_LT(tree[i] - own[i], 190'000'000) << i;
  }
}

}  // namespace
}  // namespace idlescope::host
