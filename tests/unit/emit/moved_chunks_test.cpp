// Full chunks become compressed packets while the process runs, and their place is used again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "tests/unit/emit/recorded_file.h"

namespace idlescope::emit {
namespace {

constexpr uint32_t kNext = 2;

class MovedChunks : public RecordedFile {
 protected:
  void configure(bool append_sink = false) const {
    strcpy(identity().host, "test-host");
    configure_trace_file({output_.c_str(), 0, append_sink}, [](const char*, const char*, int) {});
  }
  static bool write_one(int64_t a) {
    HostRecord* record = reserve_host_record();
    if (record == nullptr) return false;
    record->begin_ns = 1'000'000'000 + 500'000 * a;
    record->end_ns = record->begin_ns + 40'000 + a % 977;
    record->iterator = 1;
    record->epoch = 0;
    record->batch = a;
    record->a = a;
    record->b = record->c = 0;
    commit_host_record(record, kNext);
    return true;
  }
  static std::vector<int64_t> sorted(const std::vector<PlainRecord>& records) {
    std::vector<int64_t> out;
    for (const PlainRecord& record : records) out.push_back(record.a);
    std::sort(out.begin(), out.end());
    return out;
  }
};

TEST_F(MovedChunks, KeepEveryEventInAQuarterOfTheRoom) {
  constexpr int64_t kRecords = 60'000;
  EXPECT_EQ(in_child([&] {
              configure();
              for (int64_t i = 0; i < kRecords; ++i) {
                ASSERT_TRUE(write_one(i));
                if (i % 100 == 0) prepare_host_chunk();
              }
              EXPECT_EQ(file_statistics().host_events, uint64_t{kRecords});
            }),
            0);
  const std::string raw = bytes(files().at(0));
  const std::vector<int64_t> found = sorted(committed(raw));
  ASSERT_EQ(found.size(), size_t{kRecords});
  for (int64_t i = 0; i < kRecords; ++i) ASSERT_EQ(found[static_cast<size_t>(i)], i);
  EXPECT_LT(raw.size(), size_t{kRecords} * sizeof(HostRecord) / 4);
  // Two chunks of 64 and 128 KiB are all that was ever needed.
  size_t plain = 0;
  const trace::Trace file = parsed(files()[0]);
  for (const trace::Packet& packet : file.packet()) plain += packet.has_host_chunk() ? 1 : 0;
  EXPECT_LE(plain, 3u);
}

TEST_F(MovedChunks, BurstsNeedMoreChunksForAWhile) {
  constexpr int64_t kRecords = 200'000;
  EXPECT_EQ(in_child([&] {
              configure();
              for (int64_t i = 0; i < kRecords; ++i) {
                ASSERT_TRUE(write_one(i));
                if (i % 20'000 == 0) prepare_host_chunk();
              }
              for (int i = 0; i < 100; ++i) prepare_host_chunk();
              EXPECT_EQ(file_statistics().host_events, uint64_t{kRecords});
            }),
            0);
  const std::string raw = bytes(files().at(0));
  EXPECT_EQ(sorted(committed(raw)).size(), size_t{kRecords});
}

TEST_F(MovedChunks, TheAppendSinkKeepsItsChunks) {
  EXPECT_EQ(in_child([&] {
              configure(true);
              for (int64_t i = 0; i < 5000; ++i) {
                ASSERT_TRUE(write_one(i));
                if (i % 100 == 0) prepare_host_chunk();
              }
            }),
            0);
  const trace::Trace file = parsed(files().at(0));
  for (const trace::Packet& packet : file.packet()) EXPECT_FALSE(packet.has_zstd_trace());
  EXPECT_EQ(committed(file).size(), 5000u);
}

TEST_F(MovedChunks, AChildOfAForkInTheMiddleOfAMoveHasItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a fork beside threads is not for ThreadSanitizer";
#endif
  EXPECT_EQ(in_child([&] {
              configure();
              std::atomic<bool> stop{false};
              std::thread mover([&stop] {
                while (!stop) prepare_host_chunk();
              });
              for (int64_t i = 0; i < 40'000; ++i) {
                ASSERT_TRUE(write_one(i));
                if (i % 2000 != 1000) continue;
                const pid_t child = fork();
                if (child == 0) {
                  for (int64_t j = 0; j < 3000; ++j) {
                    if (!write_one(j)) _exit(1);
                    if (j % 100 == 0) prepare_host_chunk();
                  }
                  _exit(file_statistics().host_events == 3000 ? 0 : 2);
                }
                int status = 0;
                ASSERT_EQ(waitpid(child, &status, 0), child);
                ASSERT_EQ(status, 0);
              }
              stop = true;
              mover.join();
            }),
            0);
  ASSERT_EQ(files().size(), 21u);
  size_t events = 0;
  for (const std::string& path : files()) events += committed(bytes(path)).size();
  EXPECT_EQ(events, 40'000u + 20 * 3000u);
}

// Killed at random moments, also between the copy and the emptying: what was committed is there,
// once.
TEST_F(MovedChunks, SurviveKill) {
  struct Shared {
    std::atomic<int64_t> committed[2];
    std::atomic<int64_t> looks;  // of the thread that moves chunks
  };
  constexpr int kKills = 25;
  constexpr int64_t kSecond = int64_t{1} << 40;
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = static_cast<Shared*>(memory);
  std::mt19937 random(5);
  size_t with_copies = 0;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    for (auto& count : shared->committed) count = 0;
    const pid_t child = fork();
    if (child == 0) {
      configure();
      std::thread([shared] {
        for (;; ++shared->looks) prepare_host_chunk();
      }).detach();
      const auto write_on = [shared](int index) {
        for (int64_t i = 0;; ++i) {
          if (!write_one(index * kSecond + i)) _exit(1);
          shared->committed[index].store(i + 1, std::memory_order_release);
        }
      };
      std::thread(write_on, 1).detach();
      write_on(0);
    }
    while (shared->committed[0] < 2000) std::this_thread::yield();
    const int64_t seen = shared->looks;
    while (shared->looks < seen + 3) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ASSERT_EQ(files().size(), 1u);
    const std::string raw = bytes(files()[0]);
    const std::vector<int64_t> found = sorted(committed(raw));
    int64_t next[2] = {0, 0};
    for (const int64_t a : found) {
      const int index = a >= kSecond ? 1 : 0;
      ASSERT_EQ(a - index * kSecond, next[index]++) << "after kill " << kill_number;
    }
    for (const int index : {0, 1}) EXPECT_GE(next[index], shared->committed[index]);
    for (const auto& [packet, end] : placed_packets(raw)) {
      with_copies += packet.host_chunk().moved_from() != 0 ? 1 : 0;
    }
    std::filesystem::remove_all(output_);
  }
  EXPECT_GT(with_copies, 0u);
  munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace idlescope::emit
