// The door: files, directories, foreign and damaged input, dump, text traces.
#include "analysis/read/read.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "analysis/read/byte_source.h"
#include "analysis/read/dump.h"
#include "analysis/read/kineto_json.h"
#include "analysis/read/recording.h"
#include "analysis/read/text_trace.h"
#include "tests/unit/read/build_trace.h"
#include "tests/unit/read/gzip.h"

namespace idlescope::read {
namespace {

namespace fs = std::filesystem;

class ReadPaths : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::path(::testing::TempDir()) / (std::string("read_") + info->name());
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& content) {
    const fs::path path = directory_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  static Fault fault(const std::vector<std::string>& paths) {
    auto read = read_paths(paths);
    EXPECT_FALSE(read);
    return read ? Fault{} : read.error();
  }

  fs::path directory_;
};

TEST_F(ReadPaths, MissingEmptyRandomAndEmptyDirectory) {
  EXPECT_EQ(fault({(directory_ / "no").string()}).message.id, "file-missing");
  EXPECT_EQ(fault({write("empty", "")}).message.id, "file-empty");
  EXPECT_EQ(fault({write("random", "\x93\x42\x17 nonsense")}).message.id, "not-a-trace");
  fs::create_directory(directory_ / "sub");
  EXPECT_EQ(fault({(directory_ / "sub").string()}).message.id, "directory-empty");
  EXPECT_EQ(fault({write("zeros.istrace", std::string(4096, '\0'))}).message.id, "foreign-file");
}

TEST_F(ReadPaths, ForeignFilesAreNamedWithWhatToDo) {
  const Fault nsys = fault({write("run.nsys-rep", "NVIDIA Tegra Profiler Report 1.\n")});
  EXPECT_EQ(nsys.message.id, "foreign-file");
  EXPECT_NE(nsys.text().find("nsys export --type sqlite"), std::string::npos);
  EXPECT_NE(nsys.text().find("run.nsys-rep"), std::string::npos);
  const Fault xplane =
      fault({write("x.xplane.pb", std::string("\x0A\x20\x12\x09/host:CPU", 13) + "xxxxxxxx")});
  EXPECT_EQ(xplane.message.id, "foreign-file");
  EXPECT_NE(xplane.text().find("XPlane"), std::string::npos);
  EXPECT_EQ(fault({write("model.pt", "PK\x03\x04zzzz")}).message.id, "foreign-file");
}

TEST_F(ReadPaths, OtherContainersAndTextsAreNamed) {
  std::string tar(512, '\0');
  tar.replace(0, 6, "a.json");
  tar.replace(257, 5, "ustar");
  const struct {
    const char* name;
    std::string content;
    const char* what;
  } cases[] = {
      {"powershell.json", std::string("\xFF\xFE{\0", 4), "UTF-16"},
      {"ranks.tar", tar, "tar archive"},
      {"page", " \n<!DOCTYPE html><html>", "HTML"},
      {"train.py", "import torch\n", "record -- python"},
      {"stats.csv", "Time (%),Total\n1,2\n", "text table"},
      {"notes", "hello\n", "text file"},
      {"zeros", std::string(100, '\0'), "zero bytes"},
      {"x.qdrep", std::string("\x01\x02\x03\x00", 4), "no Nsight Systems report"},
      // packet { trusted_packet_sequence_id: 1 track_descriptor { uuid: 1 } }
      {"run.pftrace", std::string("\x0A\x07\x50\x01\xE2\x03\x02\x08\x01", 9), "Perfetto"},
  };
  for (const auto& one : cases) {
    const Fault got = fault({write(one.name, one.content)});
    EXPECT_EQ(got.message.id, "foreign-file") << one.name;
    EXPECT_NE(got.text().find(one.what), std::string::npos) << got.text();
  }
  EXPECT_EQ(fault({write("junk", std::string(64, '\xFF'))}).message.id, "not-a-trace");
  EXPECT_EQ(fault({"/dev/zero"}).message.id, "file-missing") << "a device has no end";
}

TEST_F(ReadPaths, DirectoryReadsAllTracesAndSkipsBadOnesAloud) {
  test::TraceBuilder trace;
  write("a.istrace", trace.bytes());
  trace.header()->mutable_process()->set_pid(101);
  write("b.istrace", trace.bytes());
  write("c.istrace", "");
  write("run.json", "{}");
  const auto read = read_paths({directory_.string()});
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->processes.size(), 2u);
  ASSERT_EQ(read->anomalies.size(), 2u);
  EXPECT_EQ(read->anomalies[0].message.id, "file-skipped");
  EXPECT_TRUE(read->anomalies[0].affects_conclusions);
}

TEST_F(ReadPaths, FilesWithoutAnEndMarkAreSaidInOneLine) {
  const auto unfinished = [&](bool footer, bool worker) {
    for (const char* name : {"a.istrace", "b.istrace"}) {
      test::TraceBuilder trace;
      if (worker) trace.event(trace::EVENT_WORKER_EXIT, 5, 5);
      if (footer) trace.packet()->mutable_footer()->set_end_ns(10);
      write(name, trace.bytes());
    }
    const auto read = read_paths({directory_.string()});
    EXPECT_TRUE(read);
    EXPECT_EQ(read->processes[1].unfinished, !footer && !worker);
    return read->anomalies;
  };
  EXPECT_TRUE(unfinished(true, false).empty());
  EXPECT_TRUE(unfinished(false, true).empty());  // ends in _exit, without a footer
  const std::vector<Anomaly> said = unfinished(false, false);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].message.id, "trace-unfinished");
  EXPECT_EQ(said[0].count, 2u);
  EXPECT_FALSE(said[0].affects_conclusions);
}

// A profile is read in pieces, never mapped: it may be cut while it is read.
TEST_F(ReadPaths, AProfileThatShrinksWhileItIsReadIsOneThatWasCut) {
  std::string text = R"({"schemaVersion":1,"traceEvents":[)";
  for (int i = 0; text.size() < (4u << 20); ++i) {
    text += R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"dur":1,"ts":)" +
            std::to_string(i * 10) + "},\n";
  }
  const std::string path = write("x.json", text + "{}]}");
  auto source = ByteSource::open(path);
  ASSERT_TRUE(source);
  size_t pieces = 0;
  Recording recording;
  const auto cut_short = [&, next = source->pieces()](char* out, size_t size) mutable {
    if (++pieces == 2) fs::resize_file(path, 1 << 20);
    return next(out, size);
  };
  const auto done = import_kineto_pieces(cut_short, source->size(), path, recording);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(recording.truncated);
  EXPECT_GT(recording.processes[0].ops.size(), 1000u);
}

TEST_F(ReadPaths, GzipInPiecesOfAnySize) {
  const std::string text = R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"kernel","name":)"
                           R"("k","pid":0,"tid":7,"dur":1,"ts":5}]})";
  for (const size_t cut : {size_t{1}, size_t{10}, text.size() - 1}) {
    const std::string packed = test::gzip(text.substr(0, cut)) + test::gzip(text.substr(cut));
    for (const size_t most : {1, 2, 3, 1000}) {
      Recording recording;
      std::string_view rest = packed;
      const auto done = import_kineto_pieces(
          [&](char* out, size_t size) {
            const size_t got = std::min({size, most, rest.size()});
            rest.copy(out, got);
            rest.remove_prefix(got);
            return got;
          },
          packed.size(), "x.json.gz", recording);
      ASSERT_TRUE(done) << done.error().text();
      EXPECT_EQ(recording.processes[0].ops.size(), 1u);
      EXPECT_TRUE(recording.anomalies.empty()) << cut << " " << most;
    }
  }
}

TEST_F(ReadPaths, DirectoryWithOnlyBadFilesIsAFault) {
  write("c.istrace", "");
  EXPECT_EQ(fault({directory_.string()}).message.id, "file-empty");
}

TEST_F(ReadPaths, TextTracesReadLikeTheirSerialisedForm) {
  const std::string path = write("x.txtpb", R"(
packet { header { format_major: 1 process { host: "n" pid: 5 } } }
packet { names { entry { id: 1 text: "gemm" } } }
packet { descriptors { gpu_op { id: 1 kind: OP_KERNEL name_id: 1 } } }
packet { window_begin { window_id: 1 begin_ns: 1 kinds: KIND_KERNEL } }
packet { gpu_ops { window_id: 1 base_ns: 100 descriptor_id: [1, 1] begin_delta_ns: [0, 50]
                   duration_ns: [10, 20] correlation_delta: [1, 1] } }
)");
  const auto read = read_paths({path});
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->processes[0].ops.size(), 2u);
  EXPECT_EQ(read->processes[0].ops[1].begin_ns, 150);
  EXPECT_EQ(read->processes[0].ops[1].end_ns, 170);
  const Fault bad = fault({write("bad.txtpb", "packet { header {\n  nonsense: 3 } }")});
  EXPECT_NE(bad.text().find("line 2"), std::string::npos);
}

TEST_F(ReadPaths, DumpPrintsEveryPacketWithAbsoluteTimes) {
  test::TraceBuilder trace;
  trace.window(1, 0, 100);
  trace.op(trace.op_descriptor(trace::OP_KERNEL, "gemm"), 1000, 1200, 3);
  trace.event(trace::EVENT_GC, 5, 6);
  std::vector<std::string> lines;
  const auto done = dump_packets(write("x.istrace", trace.bytes()),
                                 [&lines](std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(done);
  ASSERT_EQ(lines.size(), static_cast<size_t>(trace.trace().packet_size()) + 1);
  EXPECT_NE(lines[0].find(R"({"offset":0,"header":)"), std::string::npos);
  bool op_seen = false;
  for (const std::string& line : lines) {
    op_seen |= line.find(R"("begin_ns":1000,"end_ns":1200)") != std::string::npos;
  }
  EXPECT_TRUE(op_seen);
  EXPECT_NE(lines.back().find(R"({"end":"complete")"), std::string::npos);
}

}  // namespace
}  // namespace idlescope::read
