// Collects the packets of the code under test and turns them back into rows, with libprotobuf
// and libzstd: a second, independent reader.
#pragma once

#include <gtest/gtest.h>
#include <zstd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/trace.pb.h"

namespace idlescope::cuda {

struct OpRow {
  uint32_t window;
  uint32_t correlation;
  int64_t begin_ns;
  int64_t end_ns;
  trace::GpuOpDescriptor what;
};
struct CallRow {
  uint32_t window;
  uint32_t correlation;
  int64_t begin_ns;
  int64_t end_ns;
  int32_t result;
  trace::HostCallDescriptor what;
};

class RecordedPackets {
 public:
  std::vector<trace::Packet> packets;
  std::vector<std::string> names = {""};

  void add(const uint8_t* body, size_t size) {
    trace::Packet packet;
    ASSERT_TRUE(packet.ParseFromArray(body, static_cast<int>(size)));
    if (packet.body_case() != trace::Packet::kZstdTrace) {
      packets.push_back(packet);
      return;
    }
    const std::string& frame = packet.zstd_trace();
    std::string content(ZSTD_getFrameContentSize(frame.data(), frame.size()), '\0');
    ASSERT_EQ(ZSTD_decompress(content.data(), content.size(), frame.data(), frame.size()),
              content.size());
    trace::Trace inner;
    ASSERT_TRUE(inner.ParseFromString(content));
    for (const trace::Packet& each : inner.packet()) packets.push_back(each);
  }
  uint32_t name(const char* text, size_t size) {
    names.emplace_back(text, size);
    return static_cast<uint32_t>(names.size() - 1);
  }

  using Span = std::pair<int64_t, int64_t>;
  // By the words of trace.proto, GpuOpBatch.
  template <typename Batch>
  static std::vector<Span> spans_of(const Batch& batch) {
    EXPECT_EQ(batch.gap_change_ns_size(), batch.descriptor_id_size());
    EXPECT_EQ(batch.duration_change_ns_size(), batch.descriptor_id_size());
    EXPECT_EQ(batch.begin_delta_ns_size() + batch.duration_ns_size(), 0);
    std::vector<Span> spans;
    std::map<uint32_t, Span> last;  // gap and duration
    int64_t end = batch.base_ns();
    for (int i = 0; i < batch.descriptor_id_size(); ++i) {
      auto& [gap, duration] = last[batch.descriptor_id(i) & 1023];
      gap += batch.gap_change_ns(i);
      duration += batch.duration_change_ns(i);
      spans.push_back({end + gap, end + gap + duration});
      end = spans.back().second;
    }
    return spans;
  }

  std::vector<OpRow> ops() const {
    std::map<uint32_t, trace::GpuOpDescriptor> table;
    for (const trace::Packet& packet : packets) {
      for (const auto& entry : packet.descriptors().gpu_op()) table[entry.id()] = entry;
    }
    std::vector<OpRow> rows;
    for (const trace::Packet& packet : packets) {
      if (packet.body_case() != trace::Packet::kGpuOps) continue;
      const trace::GpuOpBatch& batch = packet.gpu_ops();
      const std::vector<Span> spans = spans_of(batch);
      uint32_t correlation = 0;
      for (int i = 0; i < batch.descriptor_id_size(); ++i) {
        const auto [begin, end] = spans[static_cast<size_t>(i)];
        correlation += static_cast<uint32_t>(batch.correlation_delta(i));
        EXPECT_TRUE(table.count(batch.descriptor_id(i)));
        rows.push_back({batch.window_id(), correlation, begin, end, table[batch.descriptor_id(i)]});
      }
    }
    return rows;
  }
  std::vector<CallRow> calls() const {
    std::map<uint32_t, trace::HostCallDescriptor> table;
    for (const trace::Packet& packet : packets) {
      for (const auto& entry : packet.descriptors().host_call()) table[entry.id()] = entry;
    }
    std::vector<CallRow> rows;
    for (const trace::Packet& packet : packets) {
      if (packet.body_case() != trace::Packet::kHostCalls) continue;
      const trace::HostCallBatch& batch = packet.host_calls();
      const std::vector<Span> spans = spans_of(batch);
      uint32_t correlation = 0;
      for (int i = 0; i < batch.descriptor_id_size(); ++i) {
        const auto [begin, end] = spans[static_cast<size_t>(i)];
        correlation += static_cast<uint32_t>(batch.correlation_delta(i));
        EXPECT_TRUE(table.count(batch.descriptor_id(i)));
        rows.push_back({batch.window_id(), correlation, begin, end,
                        batch.result_size() == 0 ? 0 : batch.result(i),
                        table[batch.descriptor_id(i)]});
      }
    }
    return rows;
  }
  std::vector<trace::Packet> of(trace::Packet::BodyCase kind) const {
    std::vector<trace::Packet> out;
    for (const trace::Packet& packet : packets) {
      if (packet.body_case() == kind) out.push_back(packet);
    }
    return out;
  }
  uint64_t lost(trace::LossKind kind) const {
    uint64_t count = 0;
    for (const trace::Packet& packet : of(trace::Packet::kLoss)) {
      if (packet.loss().loss_kind() == kind) count += packet.loss().count();
    }
    return count;
  }
};

// The sink and name functions of the product are plain functions: they write here.
inline RecordedPackets* recorded = nullptr;
inline bool sink_works = true;
inline bool record_packet(const uint8_t* body, size_t size) {
  if (!sink_works) return false;
  recorded->add(body, size);
  return true;
}
inline uint32_t record_name(const char* text, size_t size) { return recorded->name(text, size); }

class WithPackets : public ::testing::Test {
 protected:
  void SetUp() override {
    recorded = &packets_;
    sink_works = true;
  }
  void TearDown() override { recorded = nullptr; }
  RecordedPackets packets_;
};

}  // namespace idlescope::cuda
