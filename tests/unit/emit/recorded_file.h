// Runs a piece of recording in a child process (the file sink is one per process) and reads
// what it left with libprotobuf.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
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

struct PlacedPacket {
  trace::Packet packet;
  uint64_t end = 0;  // in the file; 0: it was inside a compressed packet
};

// The packets of a file, those of compressed packets too. Its process may have been killed: what
// was not written yet (zeros inside a packet, or up to the end of the file) is left out.
inline std::vector<PlacedPacket> placed_packets(const std::string& bytes) {
  std::vector<PlacedPacket> out;
  size_t at = 0;
  while (at < bytes.size() && bytes[at] == 0x0A) {
    uint64_t length = 0;
    ++at;
    for (int shift = 0; at < bytes.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      length |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    if (length > bytes.size() - at) break;
    trace::Packet packet;
    const bool whole = packet.ParseFromArray(bytes.data() + at, static_cast<int>(length));
    at += length;
    if (!whole) continue;
    if (!packet.has_zstd_trace()) {
      out.push_back({packet, at});
      continue;
    }
    const std::string& frame = packet.zstd_trace();
    const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) continue;
    std::string content(size, '\0');
    trace::Trace inner;
    if (ZSTD_decompress(content.data(), size, frame.data(), frame.size()) != size ||
        !inner.ParseFromString(content)) {
      continue;
    }
    for (const trace::Packet& each : inner.packet()) out.push_back({each, 0});
  }
  return out;
}

// Events in the order of the file. What was copied from a chunk and not emptied there yet counts
// once (trace.proto, HostChunk.moved_from).
inline std::vector<PlainRecord> committed(const std::string& bytes) {
  const std::vector<PlacedPacket> packets = placed_packets(bytes);
  const auto record_at = [](const std::string& raw, size_t at) {
    return std::string_view(raw).substr(at, sizeof(HostRecord));
  };
  std::map<uint64_t, std::set<std::string_view>> newest;
  for (const auto& [packet, end] : packets) {
    const trace::HostChunk& chunk = packet.host_chunk();
    if (chunk.moved_from() == 0) continue;
    std::set<std::string_view>& copy = newest[chunk.moved_from()];
    copy.clear();
    const std::string& raw = chunk.raw_events();
    for (size_t at = 0; at < raw.size(); at += sizeof(HostRecord)) copy.insert(record_at(raw, at));
  }
  std::vector<PlainRecord> out;
  for (const auto& [packet, end] : packets) {
    if (!packet.has_host_chunk()) continue;
    EXPECT_EQ(packet.host_chunk().record_bytes(), sizeof(HostRecord));
    const std::string& raw = packet.host_chunk().raw_events();
    EXPECT_EQ(raw.size() % sizeof(HostRecord), 0u);
    const auto copy = end == 0 ? newest.end() : newest.find(end - raw.size());
    for (size_t at = 0; at < raw.size(); at += sizeof(HostRecord)) {
      PlainRecord record;
      memcpy(&record, raw.data() + at, sizeof record);
      if (record.commit == 0) continue;
      if (copy != newest.end() && copy->second.count(record_at(raw, at)) != 0) continue;
      out.push_back(record);
    }
  }
  return out;
}

inline std::vector<PlainRecord> committed(const trace::Trace& file) {
  return committed(file.SerializeAsString());
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
