// Runs a piece of recording in a child process (the file sink is one per process) and reads
// what it left with libprotobuf.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "profiler/emit/host_record.h"
#include "proto/trace.pb.h"

namespace idlescope::emit {

struct PlainRecord {
  uint32_t commit = 0;
  uint32_t thread_id = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t iterator = 0;
  uint32_t epoch = 0;
  int64_t batch = 0;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};
static_assert(sizeof(PlainRecord) == sizeof(HostRecord));

inline std::vector<PlainRecord> committed(const trace::Trace& file) {
  std::vector<PlainRecord> out;
  for (const trace::Packet& packet : file.packet()) {
    if (packet.body_case() != trace::Packet::kHostChunk) continue;
    EXPECT_EQ(packet.host_chunk().record_bytes(), sizeof(HostRecord));
    const std::string& raw = packet.host_chunk().raw_events();
    EXPECT_EQ(raw.size() % sizeof(HostRecord), 0u);
    for (size_t at = 0; at < raw.size(); at += sizeof(HostRecord)) {
      PlainRecord record;
      memcpy(&record, raw.data() + at, sizeof record);
      if (record.commit != 0) out.push_back(record);
    }
  }
  return out;
}

class RecordedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "idlescope_emit_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    output_ = directory_ + "/out/deeper";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The exit status of a child that runs `body` and ends by _exit, as loader workers do.
  static int in_child(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> out;
    if (!std::filesystem::exists(output_)) return out;
    for (const auto& entry : std::filesystem::directory_iterator(output_)) {
      if (entry.path().extension() == ".istrace") out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  static std::string bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // The whole file is a valid message.
  static trace::Trace parsed(const std::string& path) {
    trace::Trace file;
    EXPECT_TRUE(file.ParseFromString(bytes(path))) << path;
    return file;
  }

  std::string directory_;
  std::string output_;
};

}  // namespace idlescope::emit
