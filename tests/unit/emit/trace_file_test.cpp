#include "profiler/emit/trace_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <csignal>
#include <map>
#include <set>
#include <thread>

#include "profiler/emit/file_placement.h"
#include "profiler/emit/process_identity.h"
#include "profiler/emit/wire_writer.h"
#include "tests/unit/emit/recorded_file.h"

namespace idlescope::emit {
namespace {

constexpr uint32_t kNext = 2;

struct Failure {
  std::string id;
  int error = 0;
  int count = 0;
};
Failure the_failure;

void remember(const char* id, const char*, int error) {
  the_failure.id = id;
  the_failure.error = error;
  ++the_failure.count;
}

class TraceFileTest : public RecordedFile {
 protected:
  void configure(uint64_t max_size_bytes = 0, bool append_sink = false) const {
    strcpy(identity().host, "test-host");
    configure_trace_file({output_.c_str(), max_size_bytes, append_sink}, remember);
  }
  static bool write_one(int64_t a) {
    HostRecord* record = reserve_host_record();
    if (record == nullptr) return false;
    record->begin_ns = a;
    record->end_ns = a + 1;
    record->a = a;
    record->batch = -1;
    commit_host_record(record, kNext);
    return true;
  }
  static std::vector<int64_t> values(const trace::Trace& file) {
    std::vector<int64_t> out;
    for (const PlainRecord& record : committed(file)) out.push_back(record.a);
    std::sort(out.begin(), out.end());
    return out;
  }
  static std::vector<int64_t> up_to(int64_t count) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(i);
    return out;
  }
};

TEST_F(TraceFileTest, NothingIsMadeWithoutAnEvent) {
  EXPECT_EQ(in_child([&] { configure(); }), 0);
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(TraceFileTest, NothingIsRecordedWithoutConfiguration) {
  EXPECT_EQ(in_child([&] {
              EXPECT_FALSE(write_one(1));
              EXPECT_EQ(name_id("x", 1), 0u);
              EXPECT_FALSE(recording_possible());
            }),
            0);
}

TEST_F(TraceFileTest, HeaderComesFirstAndNamesTheProcess) {
  int child = 0;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  EXPECT_EQ(in_child([&] {
              configure();
              identity().role = Role::kLoaderWorker;
              strcpy(identity().torch_version, "2.11.0");
              EXPECT_TRUE(write_one(0));
              const int pid = getpid();
              ASSERT_EQ(write(pipe_ends[1], &pid, sizeof pid), ssize_t{sizeof pid});
            }),
            0);
  ASSERT_EQ(read(pipe_ends[0], &child, sizeof child), ssize_t{sizeof child});
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  ASSERT_EQ(files().size(), 1u);
  const std::string name = std::filesystem::path(files()[0]).filename();
  EXPECT_EQ(name.rfind("test-host." + std::to_string(child) + ".", 0), 0u) << name;
  EXPECT_EQ(std::filesystem::status(files()[0]).permissions() & std::filesystem::perms::mask,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const trace::Trace file = parsed(files()[0]);
  ASSERT_GE(file.packet_size(), 2);
  const trace::Header& header = file.packet(0).header();
  EXPECT_EQ(header.format_major(), 1u);
  EXPECT_EQ(header.process().pid(), child);
  EXPECT_EQ(header.process().parent_pid(), getpid());
  EXPECT_EQ(header.process().host(), "test-host");
  EXPECT_EQ(header.process().role(), trace::Process::ROLE_LOADER_WORKER);
  EXPECT_EQ(header.process().torch_version(), "2.11.0");
  EXPECT_GT(header.process().start_ns(), 0);
  EXPECT_LE(header.process().start_ns(), header.clock().monotonic_ns() + 20'000'000);
  EXPECT_GT(header.process().cpu_count(), 0u);
  EXPECT_FALSE(header.process().command_line().empty());
  EXPECT_EQ(header.process().working_directory(), std::filesystem::current_path());
  EXPECT_GE(header.clock().uncertainty_ns(), 0);
  EXPECT_GT(header.clock().realtime_ns(), int64_t{1'600'000'000'000'000'000});
  EXPECT_EQ(header.boot_id().size(), 36u);
}

TEST_F(TraceFileTest, ManyChunksKeepEveryRecordInOrder) {
  constexpr int64_t kRecords = 40'000;  // chunks of 64, 128, 256, 512, 1024 KiB and on
  EXPECT_EQ(in_child([&] {
              configure();
              for (int64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(write_one(i));
              EXPECT_EQ(file_statistics().host_events, uint64_t{kRecords});
            }),
            0);
  EXPECT_EQ(values(parsed(files().at(0))), up_to(kRecords));
}

TEST_F(TraceFileTest, RecordsStartAtMultiplesOf64BytesOfTheFile) {
  EXPECT_EQ(in_child([&] {
              configure();
              for (int64_t i = 0; i < 3000; ++i) {
                ASSERT_TRUE(write_one(i));
                if (i % 500 == 0) name_id(("n" + std::to_string(i)).c_str(), 4);
              }
            }),
            0);
  const std::string raw = bytes(files().at(0));
  const trace::Trace file = parsed(files()[0]);
  for (const trace::Packet& packet : file.packet()) {
    if (packet.body_case() != trace::Packet::kHostChunk) continue;
    const size_t at = raw.find(packet.host_chunk().raw_events().substr(0, 640));
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(at % 64, 0u);
  }
}

TEST_F(TraceFileTest, ThreadsShareTheFileWithoutLoss) {
  constexpr int kThreads = 4;
  constexpr int64_t kEach = 5000;
  EXPECT_EQ(in_child([&] {
              configure();
              std::vector<std::thread> threads;
              for (int t = 0; t < kThreads; ++t) {
                threads.emplace_back([t] {
                  for (int64_t i = 0; i < kEach; ++i) {
                    ASSERT_TRUE(write_one(t * kEach + i));
                    if (i % 1000 == 0) name_id(&"abcdefgh"[i / 1000], 1);
                    if (i % 700 == 0) prepare_host_chunk();
                  }
                });
              }
              for (std::thread& thread : threads) thread.join();
            }),
            0);
  const trace::Trace file = parsed(files().at(0));
  EXPECT_EQ(values(file), up_to(kThreads * kEach));
  std::map<uint32_t, int64_t> per_thread;
  for (const PlainRecord& record : committed(file)) ++per_thread[record.thread_id];
  EXPECT_EQ(per_thread.size(), size_t{kThreads});
  for (const auto& [thread, count] : per_thread) EXPECT_EQ(count, kEach);
  std::set<std::string> names;
  for (const trace::Packet& packet : file.packet()) {
    for (const auto& entry : packet.names().entry()) {
      EXPECT_TRUE(names.insert(entry.text()).second) << entry.text();
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"a", "b", "c", "d", "e"}));
}

TEST_F(TraceFileTest, CommittedRecordsSurviveKill) {
  for (const bool append_sink : {false, true}) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      configure(0, append_sink);
      for (int64_t i = 0; i < 5000; ++i) write_one(i);
      reserve_host_record();  // reserved and never committed
      [[maybe_unused]] const ssize_t wrote = write(ready[1], "x", 1);
      pause();
      _exit(1);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
    ASSERT_EQ(files().size(), 1u);
    EXPECT_EQ(values(parsed(files()[0])), up_to(5000)) << "append sink " << append_sink;
    std::filesystem::remove_all(output_);
  }
}

// Every kind of fork: the child writes into a file of its own, the parent's goes on.
TEST_F(TraceFileTest, ChildrenOfForksGetFilesOfTheirOwn) {
  for (const bool append_sink : {false, true}) {
    EXPECT_EQ(in_child([&] {
                configure(0, append_sink);
                ASSERT_TRUE(write_one(0));
                const uint32_t id = name_id("in both", 7);
                EXPECT_EQ(id, 1u);
                for (const bool raw : {false, true}) {
                  const long child = raw ? syscall(SYS_fork) : fork();
                  if (child == 0) {
                    bool kept = write_one(100);
                    kept = kept && name_id("only here", 9) == 1 && name_id("in both", 7) == 2;
                    _exit(kept ? 0 : 1);
                  }
                  int status = 0;
                  ASSERT_EQ(waitpid(static_cast<pid_t>(child), &status, 0), child);
                  EXPECT_EQ(status, 0);
                  ASSERT_TRUE(write_one(1));
                }
              }),
              0);
    ASSERT_EQ(files().size(), 3u);
    std::map<size_t, int> sizes;
    for (const std::string& path : files()) ++sizes[values(parsed(path)).size()];
    EXPECT_EQ(sizes, (std::map<size_t, int>{{1, 2}, {3, 1}}));
    std::filesystem::remove_all(output_);
  }
}

TEST_F(TraceFileTest, AForkWhileOthersHoldTheLockDoesNotHang) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a raw fork leaves ThreadSanitizer's own locks held in the child";
#endif
  EXPECT_EQ(in_child([&] {
              configure();
              std::atomic<bool> stop{false};
              std::thread busy([&] {
                for (int i = 0; !stop; ++i) name_id(std::to_string(i % 5000).c_str(), 3);
              });
              for (int i = 0; i < 200; ++i) {
                const long child = syscall(SYS_fork);  // no atfork handlers
                if (child == 0) {
                  alarm(10);
                  syscall(SYS_exit_group, write_one(1) ? 0 : 1);
                }
                int status = 0;
                waitpid(static_cast<pid_t>(child), &status, 0);
                ASSERT_EQ(status, 0) << i;
              }
              stop = true;
              busy.join();
            }),
            0);
}

TEST_F(TraceFileTest, ClosedDescriptorsDoNotMisleadUs) {
  for (const bool append_sink : {false, true}) {
    const std::string foreign = directory_ + "/foreign";
    EXPECT_EQ(in_child([&] {
                configure(0, append_sink);
                ASSERT_TRUE(write_one(0));
                for (int fd = 3; fd < 1024; ++fd) close(fd);
                std::vector<int> theirs;
                for (int i = 0; i < 600; ++i) {
                  theirs.push_back(open(foreign.c_str(), O_RDWR | O_CREAT, 0600));
                }
                for (int64_t i = 1; i < 3000; ++i) ASSERT_TRUE(write_one(i));
                EXPECT_EQ(name_id("after", 5), 1u);
              }),
              0);
    EXPECT_EQ(std::filesystem::file_size(foreign), 0u);
    EXPECT_EQ(values(parsed(files().at(0))), up_to(3000));
    std::filesystem::remove_all(output_);
  }
}

TEST_F(TraceFileTest, AReplacedFileIsLeftAlone) {
  EXPECT_EQ(in_child([&] {
              configure();
              ASSERT_TRUE(write_one(0));
              const std::string path = trace_path();
              std::filesystem::remove(path);
              std::ofstream(path) << "not yours";
              EXPECT_EQ(name_id("x", 1), 0u);
              EXPECT_EQ(the_failure.id, "output-failed");
              EXPECT_EQ(the_failure.error, ESTALE);
              EXPECT_FALSE(write_one(1));
              EXPECT_EQ(bytes(path), "not yours");
            }),
            0);
}

TEST_F(TraceFileTest, AnUnwritableDirectoryIsReportedOnceAndCostsNothing) {
  std::ofstream(directory_ + "/out") << "a file is in the way";
  EXPECT_EQ(in_child([&] {
              configure();
              EXPECT_FALSE(write_one(0));
              EXPECT_FALSE(write_one(1));
              EXPECT_EQ(the_failure.id, "output-failed");
              EXPECT_EQ(the_failure.error, ENOTDIR);
              EXPECT_EQ(the_failure.count, 1);
              EXPECT_FALSE(recording_possible());
            }),
            0);
}

TEST_F(TraceFileTest, TheFileSizeLimitOfTheShellIsRespected) {
  for (const bool append_sink : {false, true}) {
    EXPECT_EQ(in_child([&] {
                const rlimit limit{300 * 1024, 300 * 1024};
                ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
                configure(0, append_sink);
                int64_t kept = 0;
                while (kept < 100'000 && write_one(kept)) ++kept;
                EXPECT_GT(kept, 2000);
                EXPECT_LT(kept, 5000);
                EXPECT_EQ(the_failure.id, "output-failed");
                EXPECT_EQ(the_failure.error, EFBIG);
              }),
              0)
        << "153 or 1025 is SIGXFSZ; append sink " << append_sink;
    EXPECT_GT(values(parsed(files().at(0))).size(), 2000u);
    std::filesystem::remove_all(output_);
  }
}

TEST_F(TraceFileTest, AFullDiskEndsTheRecordingNotTheJob) {
  const std::string disk = directory_ + "/disk";
  std::filesystem::create_directory(disk);
  if (system(("mount -t tmpfs -o size=200k none " + disk + " 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "cannot mount a small file system here";
  }
  output_ = disk + "/out";
  for (const bool append_sink : {false, true}) {
    EXPECT_EQ(in_child([&] {
                configure(0, append_sink);
                int64_t kept = 0;
                while (kept < 100'000 && write_one(kept)) ++kept;
                EXPECT_GT(kept, 500);
                EXPECT_LT(kept, 4000);
                EXPECT_EQ(the_failure.id, "disk-full");
                EXPECT_EQ(the_failure.error, ENOSPC);
              }),
              0);
    EXPECT_GT(values(parsed(files().at(0))).size(), 500u);
    std::filesystem::remove_all(output_);
  }
  EXPECT_EQ(system(("umount " + disk).c_str()), 0);
}

TEST_F(TraceFileTest, TheDirectoryLimitCountsAllProcesses) {
  constexpr uint64_t kLimit = 1024 * 1024;
  for (int process = 0; process < 8; ++process) {
    EXPECT_EQ(in_child([&] {
                configure(kLimit);
                int64_t kept = 0;
                while (kept < 20'000 && write_one(kept)) ++kept;
                EXPECT_EQ(the_failure.id, "size-limit");
              }),
              0);
  }
  uint64_t total = 0;
  for (const std::string& path : files()) {
    total += std::filesystem::file_size(path);
    parsed(path);
  }
  EXPECT_LE(total, kLimit);
  EXPECT_GT(total, kLimit / 2);
}

TEST_F(TraceFileTest, StopAndResume) {
  EXPECT_EQ(in_child([&] {
              configure();
              ASSERT_TRUE(write_one(0));
              stop_recording();
              EXPECT_FALSE(write_one(99));
              EXPECT_TRUE(resume_recording());
              EXPECT_TRUE(write_one(1));
            }),
            0);
  EXPECT_EQ(files().size(), 1u);
  EXPECT_EQ(values(parsed(files()[0])), up_to(2));
}

TEST_F(TraceFileTest, PacketsAndChunksDoNotOverlap) {
  EXPECT_EQ(in_child([&] {
              configure();
              std::string text(50'000, 'x');
              for (int64_t i = 0; i < 6000; ++i) {
                ASSERT_TRUE(write_one(i));
                if (i % 97 != 0) continue;
                std::vector<uint8_t> packet(60'000);
                WireWriter out(packet.data(), packet.size());
                const size_t status = out.begin(18);
                out.int_field(2, i);
                out.bytes_field(4, text.data(), static_cast<size_t>(i) * 8 % text.size());
                out.end(status);
                ASSERT_TRUE(append_packet(out.data(), out.size()));
              }
            }),
            0);
  const trace::Trace file = parsed(files().at(0));
  EXPECT_EQ(values(file), up_to(6000));
  int64_t expected = 0;
  for (const trace::Packet& packet : file.packet()) {
    if (packet.body_case() != trace::Packet::kStatus) continue;
    EXPECT_EQ(packet.status().time_ns(), expected);
    EXPECT_EQ(packet.status().detail().size(), static_cast<size_t>(expected) * 8 % 50'000);
    expected += 97;
  }
  EXPECT_EQ(expected, 6014);
}

TEST_F(TraceFileTest, ALongJobDoesNotKeepItsTraceMapped) {
  EXPECT_EQ(in_child([&] {
              configure();
              for (int64_t i = 0; i < 500'000; ++i) ASSERT_TRUE(write_one(i));  // 32 MB
              std::ifstream maps("/proc/self/maps");
              int mapped = 0;
              for (std::string line; std::getline(maps, line);) {
                if (line.find(".istrace") != std::string::npos) ++mapped;
              }
              EXPECT_LE(mapped, 3);
              EXPECT_EQ(file_statistics().host_events, 500'000u);
            }),
            0);
}

TEST_F(TraceFileTest, OneProcessThatRunsSeveralProgramsMakesSeveralFiles) {
  char path[kMaxPathBytes];
  FileIdentity identity_of{};
  for (int image = 0; image < 3; ++image) {
    const int fd = make_trace_file(output_.c_str(), "h", path, &identity_of);
    ASSERT_GE(fd, 0);
    EXPECT_TRUE(is_same_file(fd, identity_of));
    close(fd);
    EXPECT_NE(std::string(path).find("." + std::to_string(image) + ".istrace"), std::string::npos);
  }
}

}  // namespace
}  // namespace idlescope::emit
