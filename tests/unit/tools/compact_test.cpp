// Compaction keeps every event, drops unused room, and leaves alone what it cannot read.
#include "tools/compact.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "proto/trace.pb.h"

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

std::string raw_record(uint32_t commit, int64_t batch) {
  std::string record(64, '\0');
  std::memcpy(record.data(), &commit, sizeof commit);
  std::memcpy(record.data() + 32, &batch, sizeof batch);
  return record;
}

// A header, a chunk of 1 000 records of which three were committed, a name, a footer.
trace::Trace worker_trace() {
  trace::Trace trace;
  trace.add_packet()->mutable_header()->set_format_major(1);
  trace::HostChunk* chunk = trace.add_packet()->mutable_host_chunk();
  chunk->set_padding(std::string(37, '\0'));
  chunk->set_record_bytes(64);
  std::string raw = raw_record(34, 1) + raw_record(34, 2) + raw_record(0, 3) + raw_record(37, 4);
  raw.resize(64 * 1000);
  chunk->set_raw_events(raw);
  trace::NameTable::Entry* name = trace.add_packet()->mutable_names()->add_entry();
  name->set_id(1);
  name->set_text("train.py:41 main");
  trace.add_packet()->mutable_footer()->set_host_events(3);
  return trace;
}

// All packets, frames opened.
trace::Trace expand(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  trace::Trace outer;
  EXPECT_TRUE(outer.ParseFromIstream(&file)) << path;
  trace::Trace all;
  for (const trace::Packet& packet : outer.packet()) {
    if (!packet.has_zstd_trace()) {
      *all.add_packet() = packet;
      continue;
    }
    const std::string& frame = packet.zstd_trace();
    std::string content(ZSTD_getFrameContentSize(frame.data(), frame.size()), '\0');
    EXPECT_EQ(ZSTD_decompress(content.data(), content.size(), frame.data(), frame.size()),
              content.size());
    trace::Trace inner;
    EXPECT_TRUE(inner.ParseFromString(content));
    all.MergeFrom(inner);
  }
  return all;
}

class Compact : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/idlescope_test_XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = (root_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  fs::path root_;
};

TEST_F(Compact, KeepsEveryCommittedEventAndEveryOtherPacket) {
  const trace::Trace before = worker_trace();
  const std::string read_before = before.SerializeAsString();
  const std::string path = write("h.1.2.0.istrace", read_before);
  const auto compacted = compact_file(path);
  ASSERT_TRUE(compacted);
  EXPECT_GT(compacted->before_bytes, 64'000u);
  EXPECT_LT(compacted->after_bytes, 400u);
  EXPECT_EQ(compacted->after_bytes, fs::file_size(path));

  trace::Trace expected = before;
  trace::HostChunk* chunk = expected.mutable_packet(1)->mutable_host_chunk();
  chunk->clear_padding();
  // Copies in other packets name that place.
  chunk->set_original_offset(read_before.find(chunk->raw_events()));
  chunk->set_raw_events(raw_record(34, 1) + raw_record(34, 2) + raw_record(37, 4));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(expand(path), expected));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1);
}

TEST_F(Compact, CopiesStayCopies) {
  trace::Trace before = worker_trace();
  trace::HostChunk* copy = before.add_packet()->mutable_host_chunk();
  copy->set_record_bytes(64);
  copy->set_raw_events(raw_record(34, 9));
  copy->set_moved_from(123);
  const std::string path = write("h.1.2.0.istrace", before.SerializeAsString());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(compact_file(path));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      expand(path).packet(4).host_chunk(), *copy));
}

TEST_F(Compact, TwiceChangesNothing) {
  const std::string path = write("h.1.2.0.istrace", worker_trace().SerializeAsString());
  ASSERT_TRUE(compact_file(path));
  const std::string once = read(path);
  const auto again = compact_file(path);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->before_bytes, again->after_bytes);
  EXPECT_EQ(read(path), once);
}

TEST_F(Compact, ManyFramesKeepTheOrder) {
  trace::Trace before;
  before.add_packet()->mutable_header()->set_format_major(1);
  for (uint32_t i = 0; i < 5000; ++i) {
    trace::NameTable::Entry* name = before.add_packet()->mutable_names()->add_entry();
    name->set_id(i + 1);
    name->set_text(std::string(1000, static_cast<char>('a' + i % 26)));
  }
  const std::string path = write("h.1.2.0.istrace", before.SerializeAsString());
  ASSERT_TRUE(compact_file(path));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(expand(path), before));
}

TEST_F(Compact, ReservedRoomAtTheEndIsDropped) {
  const trace::Trace before = worker_trace();
  const std::string path =
      write("h.1.2.0.istrace", before.SerializeAsString() + std::string(100'000, '\0'));
  ASSERT_TRUE(compact_file(path));
  EXPECT_EQ(expand(path).packet_size(), before.packet_size());
}

TEST_F(Compact, PaddedLengthsAreRead) {
  const std::string header = worker_trace().packet(0).SerializeAsString();
  ASSERT_LT(header.size(), 128u);
  std::string bytes = "\x0A";
  bytes += static_cast<char>(header.size() | 0x80);
  bytes += std::string("\x80\x80\x80\x00", 4);
  bytes += header;
  const std::string path = write("h.1.2.0.istrace", bytes);
  ASSERT_TRUE(compact_file(path));
  EXPECT_EQ(expand(path).packet_size(), 1);
}

TEST_F(Compact, EveryCutOrDamagedFileStaysByteForByte) {
  const std::string whole = worker_trace().SerializeAsString();
  const std::string garbage = "this is not a trace at all";
  std::string newer = whole;
  newer[0] = '\x12';
  std::vector<std::string> cases = {
      "", garbage, newer, whole.substr(0, whole.size() - 1), whole.substr(0, 300), whole + "x"};
  for (const std::string& bytes : cases) {
    const std::string path = write("h.1.2.0.istrace", bytes);
    const auto compacted = compact_file(path);
    ASSERT_FALSE(compacted);
    EXPECT_EQ(compacted.error(), CompactError::kDamaged);
    EXPECT_EQ(read(path), bytes);
    EXPECT_FALSE(fs::exists(path + ".compacting"));
  }
}

TEST(TraceFileName, IsReadFromTheRight) {
  TraceFileName name;
  ASSERT_TRUE(parse_trace_file_name("node7.cluster.local.123.4567.2.istrace", &name));
  EXPECT_EQ(name.host, "node7.cluster.local");
  EXPECT_EQ(name.pid, 123);
  EXPECT_EQ(name.start_ticks, 4567u);
  EXPECT_EQ(name.image, 2);
  for (const char* bad : {"", ".istrace", "h.istrace", "1.2.3.istrace", "h.1.2.x.istrace",
                          "h.1.2.0.istrace.compacting", "run.json"}) {
    EXPECT_FALSE(parse_trace_file_name(bad, &name)) << bad;
  }
}

uint64_t own_start_ticks() {
  std::ifstream file("/proc/self/stat");
  std::string word;
  for (int field = 1; field <= 22; ++field) file >> word;
  return std::stoull(word);
}

TEST(HasEnded, OnlyForProcessesOfThisHostThatAreGone) {
  TraceFileName name{"here", getpid(), own_start_ticks(), 0};
  EXPECT_FALSE(has_ended(name, "here"));
  name.start_ticks += 1;  // the pid was given to another process since
  EXPECT_TRUE(has_ended(name, "here"));
  EXPECT_FALSE(has_ended(name, "elsewhere"));

  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(has_ended({"here", child, 0, 0}, "here")) << "a zombie writes no more";
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(has_ended({"here", child, 0, 0}, "here"));
}

TEST_F(Compact, TheCompactorTakesOnlyWhatHasEndedAndGivesTheRoomBack) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const std::string bytes = worker_trace().SerializeAsString();
  const std::string dead = write("here." + std::to_string(child) + ".1.0.istrace", bytes);
  const std::string alive = write(
      "here." + std::to_string(getpid()) + "." + std::to_string(own_start_ticks()) + ".0.istrace",
      bytes);
  const std::string remote = write("there." + std::to_string(child) + ".1.0.istrace", bytes);
  uint64_t used = 3 * bytes.size();
  write("here.usage", std::string(reinterpret_cast<const char*>(&used), sizeof used) +
                          std::string(4096 - sizeof used, '\0'));

  Compactor compactor(root_.string(), "here");
  const uint64_t freed = compactor.compact_ended();
  EXPECT_GT(freed, 60'000u);
  EXPECT_FALSE(compactor.all_ended());
  EXPECT_EQ(fs::file_size(dead), bytes.size() - freed);
  EXPECT_EQ(read(alive), bytes);
  EXPECT_EQ(read(remote), bytes);
  uint64_t now = 0;
  std::memcpy(&now, read((root_ / "here.usage").string()).data(), sizeof now);
  EXPECT_EQ(now, used - freed);
  EXPECT_EQ(compactor.compact_ended(), 0u) << "not twice";
}

}  // namespace
}  // namespace idlescope::tools
