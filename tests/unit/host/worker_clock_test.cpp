#include "profiler/host/worker_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace idlescope::host {
namespace {

void spin_for_ns(int64_t ns) {
  const int64_t end = thread_cpu_ns() + ns;
  while (thread_cpu_ns() < end) {
  }
}

TEST(WorkerClockTest, CpuWorkIsCpuTime) {
  const FetchReading begin = read_fetch_counters();
  spin_for_ns(20'000'000);
  const FetchReading spent = difference(read_fetch_counters(), begin);
  EXPECT_GE(spent.thread_cpu_ns, 20'000'000);
  EXPECT_LT(spent.thread_cpu_ns, 25'000'000);
  EXPECT_GE(spent.process_cpu_ns, spent.thread_cpu_ns - 1'000'000);
  EXPECT_GE(spent.wall_ns, spent.thread_cpu_ns - 100'000);
}

TEST(WorkerClockTest, SleepIsNeitherCpuNorRunQueue) {
  const FetchReading begin = read_fetch_counters();
  usleep(30'000);
  const FetchReading spent = difference(read_fetch_counters(), begin);
  EXPECT_GE(spent.wall_ns, 30'000'000);
  EXPECT_LT(spent.thread_cpu_ns, 5'000'000);
  if (spent.run_delay_ns < 0) GTEST_SKIP() << "no schedstat on this kernel";
  EXPECT_GE(spent.wall_ns - spent.thread_cpu_ns - spent.run_delay_ns, 25'000'000);
}

TEST(WorkerClockTest, OtherThreadsCpuShowsInTheProcessOnly) {
  const FetchReading begin = read_fetch_counters();
  std::thread other([] { spin_for_ns(20'000'000); });
  other.join();
  const FetchReading spent = difference(read_fetch_counters(), begin);
  EXPECT_GE(spent.process_cpu_ns, 20'000'000);
  EXPECT_LT(spent.thread_cpu_ns, 10'000'000);
}

TEST(WorkerClockTest, BytesReadAreTheJobsNotOurs) {
  const std::string path = ::testing::TempDir() + "idlescope_worker_clock";
  std::ofstream(path) << std::string(100'000, 'x');
  std::vector<char> room(100'000);
  read_fetch_counters();  // opens our files
  const FetchReading begin = read_fetch_counters();
  const FetchReading idle = difference(read_fetch_counters(), begin);
  if (idle.bytes_read < 0) GTEST_SKIP() << "/proc/thread-self/io cannot be read here";
  EXPECT_EQ(idle.bytes_read, 0);
  const FetchReading before = read_fetch_counters();
  const int fd = open(path.c_str(), O_RDONLY);
  ASSERT_EQ(read(fd, room.data(), room.size()), 100'000);
  close(fd);
  EXPECT_EQ(difference(read_fetch_counters(), before).bytes_read, 100'000);
  unlink(path.c_str());
}

TEST(WorkerClockTest, SurvivesAJobThatClosesAllDescriptors) {
  read_fetch_counters();
  std::thread([] {
    read_fetch_counters();
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    std::vector<int> theirs;
    for (int i = 0; i < 500; ++i) theirs.push_back(open("/proc/self/cmdline", O_RDONLY));
    const FetchReading begin = read_fetch_counters();
    const FetchReading spent = difference(read_fetch_counters(), begin);
    EXPECT_EQ(spent.run_delay_ns, -1);  // cannot be read, and no nonsense
    EXPECT_EQ(spent.bytes_read, -1);
    for (int fd : theirs) close(fd);
  }).join();
}

TEST(WorkerClockTest, UnknownStaysUnknown) {
  const FetchReading none{10, -1, 5, -1, 3, -1, 7};
  const FetchReading spent = difference({20, 4, -1, 3, 4, 9, 9}, none);
  EXPECT_EQ(spent.wall_ns, 10);
  EXPECT_EQ(spent.thread_cpu_ns, -1);
  EXPECT_EQ(spent.process_cpu_ns, -1);
  EXPECT_EQ(spent.run_delay_ns, -1);
  EXPECT_EQ(spent.major_faults, 1);
  EXPECT_EQ(spent.blocks_in, -1);
  EXPECT_EQ(spent.bytes_read, 2);
}

}  // namespace
}  // namespace idlescope::host
