// The native reader: joins, windows, ids, host chunks, every oddity of a file.
#include "analysis/read/trace_reader.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <zstd.h>

#include "analysis/read/dump.h"
#include "analysis/read/packet_stream.h"
#include "analysis/read/recording.h"
#include "proto/messages.h"
#include "tests/unit/read/build_trace.h"
#include "tests/unit/read/describe.h"

namespace idlescope::read {
namespace {

using test::TraceBuilder;

Recording read(const std::string& bytes) {
  Recording recording;
  const auto done = read_trace(bytes, "x.istrace", recording);
  EXPECT_TRUE(done) << done.error().text();
  return recording;
}

uint64_t anomaly(const Recording& recording, const messages::Message& message) {
  uint64_t count = 0;
  for (const Anomaly& entry : recording.anomalies) {
    if (entry.message.id == message.id) count += entry.count;
  }
  return count;
}

// Two steps of two kernels; runtime calls around driver calls; loader events.
TraceBuilder small_trace() {
  TraceBuilder trace;
  trace.window(1, 0, 10'000);
  const uint32_t gemm = trace.op_descriptor(trace::OP_KERNEL, "gemm");
  const uint32_t copy = trace.op_descriptor(trace::OP_MEMCPY, "");
  const uint32_t launch = trace.call_descriptor(trace::CALL_LAUNCH, "cudaLaunchKernel");
  const uint32_t driver = trace.call_descriptor(trace::CALL_LAUNCH, "cuLaunchKernel", 100, true);
  const uint32_t memcpy_call = trace.call_descriptor(trace::CALL_MEMCPY, "cudaMemcpyAsync");
  for (int step = 0; step < 2; ++step) {
    const int64_t at = 1000 + step * 3000;
    const uint32_t corr = 10 + static_cast<uint32_t>(step) * 10;
    trace.call(driver, at + 2, at + 8, corr);
    trace.call(launch, at, at + 10, corr);
    trace.op(gemm, at + 20, at + 500, corr);
    trace.call(memcpy_call, at + 30, at + 40, corr + 1);
    trace.op(copy, at + 600, at + 700, corr + 1);
    trace.event(trace::EVENT_LOADER_NEXT, at - 500, at - 10)->set_batch(step);
  }
  trace.event(trace::EVENT_STEP, 3500, 3500)->set_c(trace.name("SGD"));
  return trace;
}

// A chunk that was copied into a compressed packet, half emptied, and used again in part, when
// the process was killed: every event counts once.
TEST(TraceReader, WhatWasCopiedAndNotEmptiedYetIsReadOnce) {
  const auto record = [](uint32_t kind, int64_t at) {
    std::string out(64, '\0');
    std::memcpy(out.data(), &kind, sizeof kind);
    std::memcpy(out.data() + 8, &at, sizeof at);
    std::memcpy(out.data() + 16, &at, sizeof at);
    return out;
  };
  constexpr uint32_t kGc = trace::EVENT_GC;
  const auto chunk = [](trace::Trace* trace, const std::string& raw) {
    trace::HostChunk* one = trace->add_packet()->mutable_host_chunk();
    one->set_record_bytes(64);
    one->set_raw_events(raw);
    return one;
  };
  const auto frame_of = [](const trace::Trace& inner) {
    const std::string plain = inner.SerializeAsString();
    std::string frame(ZSTD_compressBound(plain.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), plain.data(), plain.size(), 1));
    return frame;
  };
  for (const bool rewritten : {false, true}) {
    trace::Trace file;
    file.add_packet()->mutable_header()->set_format_major(1);
    const std::string raw = record(kGc, 900) + record(0, 200) + record(kGc, 300) + record(kGc, 400);
    trace::HostChunk* place = chunk(&file, raw);
    const uint64_t offset = file.SerializeAsString().find(raw);
    if (rewritten) place->set_original_offset(77'777);
    // An older copy from the same place, and the newest.
    trace::Trace copies;
    for (const int64_t first : {10, 100}) {
      std::string copied;
      for (int64_t i = 0; i < 4; ++i) copied += record(kGc, first * (i + 1));
      chunk(&copies, copied)->set_moved_from(rewritten ? 77'777 : offset);
    }
    file.add_packet()->set_zstd_trace(frame_of(copies));
    const Recording recording = read(file.SerializeAsString());
    std::vector<Ns> times;
    for (const HostEvent& event : recording.processes[0].host_events) {
      times.push_back(event.begin_ns);
    }
    EXPECT_EQ(times, (std::vector<Ns>{10, 20, 30, 40, 100, 200, 300, 400, 900}));
  }
}

TEST(TraceReader, JoinsOpsToTheOutermostCall) {
  const Recording recording = read(small_trace().bytes());
  ASSERT_EQ(recording.processes.size(), 1u);
  const Process& process = recording.processes[0];
  EXPECT_TRUE(recording.anomalies.empty());
  ASSERT_EQ(process.ops.size(), 4u);
  ASSERT_EQ(process.calls.size(), 6u);
  for (const Op& op : process.ops) {
    ASSERT_NE(op.call, kNone);
    EXPECT_EQ(process.calls[op.call].correlation, op.correlation);
    EXPECT_EQ(process.calls[op.call].parent, kNone);
    EXPECT_FALSE(process.call_descriptors[process.calls[op.call].descriptor].driver);
  }
  // cudaLaunchKernel, and cuLaunchKernel inside it.
  EXPECT_EQ(process.calls[0].begin_ns, 1000);
  EXPECT_EQ(process.calls[1].begin_ns, 1002);
  EXPECT_EQ(process.calls[1].parent, 0u);
  EXPECT_EQ(process.main_thread, TraceBuilder::kPid);
  EXPECT_EQ(process.first_ns, 0);
  EXPECT_EQ(process.last_ns, 10'000);
}

TEST(TraceReader, EqualExtentMakesTheRuntimeCallTheOuterOne) {
  TraceBuilder trace;
  trace.window(1, 0, 100);
  const uint32_t driver = trace.call_descriptor(trace::CALL_LAUNCH, "cuLaunchKernel", 100, true);
  const uint32_t launch = trace.call_descriptor(trace::CALL_LAUNCH, "cudaLaunchKernel");
  trace.call(driver, 10, 20, 1);
  trace.call(launch, 10, 20, 1);
  trace.op(trace.op_descriptor(trace::OP_KERNEL, "k"), 30, 40, 1);
  const Recording recording = read(trace.bytes());
  const Process& process = recording.processes[0];
  EXPECT_FALSE(process.call_descriptors[process.calls[0].descriptor].driver);
  EXPECT_EQ(process.calls[1].parent, 0u);
  EXPECT_EQ(process.ops[0].call, 0u);
}

TEST(TraceReader, CorrelationIdsRestartInEveryWindow) {
  TraceBuilder trace;
  const uint32_t kernel = trace.op_descriptor(trace::OP_KERNEL, "k");
  const uint32_t launch = trace.call_descriptor(trace::CALL_LAUNCH, "cudaLaunchKernel");
  trace.window(1, 0, 1000);
  trace.call(launch, 10, 20, 5);
  trace.op(kernel, 30, 40, 5);
  trace.window(2, 2000, 3000);
  trace.call(launch, 2010, 2020, 5);
  trace.op(kernel, 2030, 2040, 5);
  trace.op(kernel, 2050, 2060, 6);
  const Recording recording = read(trace.bytes());
  const Process& process = recording.processes[0];
  ASSERT_EQ(process.ops.size(), 3u);
  EXPECT_EQ(process.calls[process.ops[0].call].begin_ns, 10);
  EXPECT_EQ(process.calls[process.ops[1].call].begin_ns, 2010);
  EXPECT_EQ(process.ops[2].call, kNone);
}

TEST(TraceReader, ScatteredCorrelationsJoinToo) {
  TraceBuilder trace;
  trace.window(1, 0, 100'000);
  const uint32_t kernel = trace.op_descriptor(trace::OP_KERNEL, "k");
  const uint32_t launch = trace.call_descriptor(trace::CALL_LAUNCH, "cudaLaunchKernel");
  for (uint32_t i = 0; i < 50; ++i) {
    const uint32_t corr = 1 + i * 80'000'000;
    trace.call(launch, i * 100, i * 100 + 10, corr);
    trace.op(kernel, i * 100 + 20, i * 100 + 30, corr);
  }
  const Recording recording = read(trace.bytes());
  for (const Op& op : recording.processes[0].ops) {
    ASSERT_NE(op.call, kNone);
    EXPECT_EQ(recording.processes[0].calls[op.call].begin_ns, op.begin_ns - 20);
  }
}

TEST(TraceReader, OpenWindowEndsWithItsLastRecord) {
  TraceBuilder trace;
  trace.window(1, 100, 0);
  trace.op(trace.op_descriptor(trace::OP_KERNEL, "k"), 200, 777, 1);
  const Recording recording = read(trace.bytes());
  const Window& window = recording.processes[0].windows[0];
  EXPECT_FALSE(window.closed);
  EXPECT_EQ(window.end_ns, 777);
  EXPECT_TRUE(window.records(trace::KIND_KERNEL));
  EXPECT_FALSE(window.records(trace::KIND_NVTX));
}

TEST(TraceReader, NameIdsOfEventsBecomeStrings) {
  const Recording recording = read(small_trace().bytes());
  const Process& process = recording.processes[0];
  bool seen = false;
  for (const HostEvent& event : process.host_events) {
    if (event.kind != trace::EVENT_STEP) continue;
    seen = true;
    EXPECT_EQ(recording.strings[static_cast<uint32_t>(event.c)], "SGD");
  }
  EXPECT_TRUE(seen);
}

TEST(TraceReader, StreamHandlesMeetStreamIds) {
  TraceBuilder trace;
  trace.window(1, 0, 100);
  trace::Context* context = trace.packet()->mutable_context();
  context->set_context_id(1);
  context->set_null_stream_id(7);
  trace::Stream* side = trace.packet()->mutable_stream();
  side->set_context_id(1);
  side->set_stream_id(13);
  side->set_handle(0xabc0);
  trace.op(trace.op_descriptor(trace::OP_KERNEL, "k", 7), 10, 20, 1);
  trace::DescriptorTable* table = trace.packet()->mutable_descriptors();
  for (const uint64_t handle : {0x0ull, 0xabc0ull, 0x1ull, 0x2ull, 0xdeadull}) {
    trace::HostCallDescriptor* call = table->add_host_call();
    call->set_id(static_cast<uint32_t>(table->host_call_size()));
    call->set_context_id(1);
    call->set_stream_handle(handle);
  }
  const Recording recording = read(trace.bytes());
  const Process& process = recording.processes[0];
  const auto stream_id = [&process](size_t descriptor) {
    const uint32_t stream = process.call_descriptors[descriptor].stream;
    return stream == kNone ? 0u : process.streams[stream].stream_id;
  };
  ASSERT_EQ(process.call_descriptors.size(), 5u);
  EXPECT_EQ(stream_id(0), 7u);
  EXPECT_EQ(stream_id(1), 13u);
  EXPECT_EQ(stream_id(2), 7u);  // cudaStreamLegacy
  EXPECT_EQ(stream_id(3), 0u);  // cudaStreamPerThread: not known here
  EXPECT_EQ(stream_id(4), 0u);
}

std::string raw_record(uint32_t kind, int64_t begin_ns, int64_t end_ns) {
  std::string record(64, '\0');
  const uint32_t thread_id = 100;
  std::memcpy(record.data(), &kind, 4);
  std::memcpy(record.data() + 4, &thread_id, 4);
  std::memcpy(record.data() + 8, &begin_ns, 8);
  std::memcpy(record.data() + 16, &end_ns, 8);
  return record;
}

std::string with_chunk(const std::string& records) {
  TraceBuilder trace;
  trace::HostChunk* chunk = trace.packet()->mutable_host_chunk();
  chunk->set_padding("abc");
  chunk->set_record_bytes(64);
  chunk->set_raw_events(records);
  return trace.bytes();
}

TEST(TraceReader, HostChunkSkipsWhatWasNeverCommitted) {
  const std::string bytes =
      with_chunk(raw_record(trace::EVENT_LOADER_NEXT, 10, 20) + std::string(64, '\0') +
                 raw_record(trace::EVENT_GC, 30, 40) + raw_record(9999, 1, 2) +
                 raw_record(trace::EVENT_GC, 50, 45) + std::string(128, '\0'));
  const Recording recording = read(bytes);
  const Process& process = recording.processes[0];
  ASSERT_EQ(process.host_events.size(), 2u);
  EXPECT_EQ(process.host_events[0].kind, trace::EVENT_LOADER_NEXT);
  EXPECT_EQ(process.host_events[1].begin_ns, 30);
  EXPECT_EQ(anomaly(recording, messages::kTraceUncommitted), 1u);
  EXPECT_EQ(anomaly(recording, messages::kTraceUnknownKind), 1u);
  EXPECT_EQ(anomaly(recording, messages::kTraceTimeReversed), 1u);
}

TEST(TraceReader, FullHostChunkKeepsItsLastRecord) {
  const Recording recording = read(with_chunk(raw_record(trace::EVENT_LOADER_NEXT, 10, 20) +
                                              raw_record(trace::EVENT_GC, 30, 40)));
  ASSERT_EQ(recording.processes[0].host_events.size(), 2u);
  EXPECT_EQ(recording.processes[0].host_events[1].kind, trace::EVENT_GC);
}

TEST(TraceReader, CutHostChunkKeepsWholeRecords) {
  std::string bytes = with_chunk(raw_record(trace::EVENT_LOADER_NEXT, 10, 20) +
                                 raw_record(trace::EVENT_GC, 30, 40));
  bytes.resize(bytes.size() - 10);  // inside the second record
  const Recording recording = read(bytes);
  EXPECT_TRUE(recording.truncated);
  ASSERT_EQ(recording.processes[0].host_events.size(), 1u);
  EXPECT_EQ(recording.processes[0].host_events[0].kind, trace::EVENT_LOADER_NEXT);
}

TEST(TraceReader, PaddedLengthsAndZeroTail) {
  TraceBuilder trace;
  std::string bytes = trace.bytes();
  trace::Packet loss;
  loss.mutable_loss()->set_count(7);
  const std::string body = loss.SerializeAsString();
  bytes += '\x0A';
  bytes += static_cast<char>(body.size() | 0x80);  // 5-byte varint
  bytes += "\x80\x80\x80";
  bytes += '\0';
  bytes += body;
  bytes += std::string(1000, '\0');
  const Recording recording = read(bytes);
  ASSERT_EQ(recording.processes[0].losses.size(), 1u);
  EXPECT_EQ(recording.processes[0].losses[0].count(), 7u);
  EXPECT_FALSE(recording.truncated);
  EXPECT_TRUE(recording.anomalies.empty());
}

TEST(TraceReader, HoleBetweenPacketsIsCounted) {
  TraceBuilder trace;
  std::string bytes = trace.bytes() + std::string(333, '\0');
  trace::Trace more;
  more.add_packet()->mutable_loss()->set_count(7);
  bytes += more.SerializeAsString();
  const Recording recording = read(bytes);
  EXPECT_EQ(recording.processes[0].losses.size(), 1u);
  EXPECT_EQ(anomaly(recording, messages::kTraceHole), 1u);
}

TEST(TraceReader, GarbageAfterPacketsIsSaid) {
  const Recording recording = read(small_trace().bytes() + "\x7F\x7Fgarbage");
  EXPECT_EQ(recording.processes[0].ops.size(), 4u);
  EXPECT_EQ(anomaly(recording, messages::kTraceCutShort), 1u);
}

TEST(TraceReader, NewerMajorIsRefusedAndMinorIsNot) {
  TraceBuilder trace;
  trace.header()->set_format_minor(9);
  EXPECT_TRUE(read(trace.bytes()).anomalies.empty());
  trace.header()->set_format_major(2);
  Recording recording;
  const auto done = read_trace(trace.bytes(), "x.istrace", recording);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message.id, "newer-format");
  EXPECT_NE(done.error().text().find("2.9"), std::string::npos);
}

TEST(TraceReader, UnknownFieldsAndPacketsAreSkipped) {
  std::string bytes = small_trace().bytes();
  // A packet with only field 30 (unknown), and a field 9 of Trace.
  bytes += std::string("\x0A\x05\xF2\x01\x02hi", 7);
  bytes += std::string("\x4A\x03xyz", 5);
  const Recording recording = read(bytes);
  EXPECT_EQ(recording.processes[0].ops.size(), 4u);
  EXPECT_EQ(anomaly(recording, messages::kTraceUnknownPacket), 1u);
}

TEST(TraceReader, MissingDescriptorsNamesAndWindowsAreCounted) {
  TraceBuilder trace;
  trace.op(99, 10, 20, 1);
  const uint32_t kernel = trace.op_descriptor(trace::OP_KERNEL, "k");
  trace.op(kernel, 30, 40, 1);
  trace.event(trace::EVENT_MARK, 5, 5)->set_a(12345);
  const Recording recording = read(trace.bytes());
  EXPECT_EQ(recording.processes[0].ops.size(), 1u);
  EXPECT_EQ(anomaly(recording, messages::kTraceDescriptorMissing), 1u);
  EXPECT_EQ(anomaly(recording, messages::kTraceNameMissing), 1u);
  EXPECT_EQ(anomaly(recording, messages::kTraceWindowMissing), 1u);
  ASSERT_EQ(recording.processes[0].windows.size(), 1u);
  EXPECT_EQ(recording.processes[0].windows[0].begin.kinds_size(), 0);
}

TEST(TraceReader, AbsurdTimesAreLeftOut) {
  TraceBuilder trace;
  trace.window(1, 0, 100);
  const uint32_t kernel = trace.op_descriptor(trace::OP_KERNEL, "k");
  trace.op(kernel, INT64_MAX - 5, INT64_MAX, 1);
  trace.op(kernel, 50, 20, 2);
  trace.op(kernel, 50, 60, 3);
  const Recording recording = read(trace.bytes());
  EXPECT_EQ(recording.processes[0].ops.size(), 1u);
  EXPECT_EQ(anomaly(recording, messages::kTraceTimeReversed), 2u);
}

std::string compressed(const std::string& content) {
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 3));
  return frame;
}

TEST(TraceReader, CompressedPacketsReadLikePlainOnes) {
  const TraceBuilder plain = small_trace();
  TraceBuilder packed;
  trace::Trace inner = trace::Trace();
  TraceBuilder source = small_trace();
  for (int i = 1; i < source.trace().packet_size(); ++i) {
    *inner.add_packet() = source.trace().packet(i);
  }
  packed.packet()->set_zstd_trace(compressed(inner.SerializeAsString()));
  EXPECT_EQ(test::describe(read(packed.bytes())), test::describe(read(plain.bytes())));
}

TEST(TraceReader, CompressedBombIsRefused) {
  TraceBuilder trace;
  trace.packet()->set_zstd_trace(compressed(std::string(100u << 20, 'x')));
  const Recording recording = read(trace.bytes());
  EXPECT_EQ(anomaly(recording, messages::kTraceCorrupt), 1u);
}

TEST(TraceReader, CuptiClockIsMapped) {
  TraceBuilder trace;
  trace.window(1, 1000, 3000);
  for (trace::Packet& packet : *trace.trace().mutable_packet()) {
    if (packet.has_window_begin()) {
      packet.mutable_window_begin()->set_clock(trace::WindowBegin::CLOCK_CUPTI);
    }
  }
  for (const int64_t at : {0, 1000}) {
    trace::ClockPair* pair = trace.packet()->mutable_clock_pair();
    pair->set_window_id(1);
    pair->set_monotonic_ns(1000 + 2 * at);
    pair->set_cupti_ns(50'000 + at);
  }
  trace.op(trace.op_descriptor(trace::OP_KERNEL, "k"), 50'100, 50'200, 1);
  const Recording recording = read(trace.bytes());
  EXPECT_EQ(recording.processes[0].ops[0].begin_ns, 1200);
  EXPECT_EQ(recording.processes[0].ops[0].end_ns, 1400);
}

TEST(TraceReader, EventEdgesMeetCalls) {
  TraceBuilder trace;
  trace.window(1, 0, 100);
  const uint32_t record = trace.call_descriptor(trace::CALL_EVENT_RECORD, "cudaEventRecord");
  const uint32_t wait = trace.call_descriptor(trace::CALL_STREAM_WAIT_EVENT, "cudaStreamWaitEvent");
  trace.call(record, 10, 11, 1);
  trace.call(wait, 12, 13, 2);
  trace::EventEdgeBatch* batch = trace.packet()->mutable_event_edges();
  batch->set_window_id(1);
  trace::EventEdge* edge = batch->add_edge();
  edge->set_record_correlation_id(1);
  edge->set_wait_correlation_id(2);
  const Recording recording = read(trace.bytes());
  ASSERT_EQ(recording.processes[0].event_edges.size(), 1u);
  EXPECT_EQ(recording.processes[0].event_edges[0].record_call, 0u);
  EXPECT_EQ(recording.processes[0].event_edges[0].wait_call, 1u);
}

// ---- properties

TEST(TraceReaderProperty, PacketOrderDoesNotShow) {
  TraceBuilder trace = small_trace();
  const std::string expected = test::describe(read(trace.bytes()));
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    auto* packets = trace.trace().mutable_packet();
    // The header stays first.
    for (int i = packets->size() - 1; i > 1; --i) {
      const int j = 1 + static_cast<int>(random() % static_cast<unsigned>(i));
      packets->SwapElements(i, j);
    }
    ASSERT_EQ(test::describe(read(trace.bytes())), expected);
  }
}

TEST(TraceReaderProperty, AnyPrefixIsReadable) {
  const std::string bytes =
      small_trace().bytes() + with_chunk(raw_record(trace::EVENT_GC, 30, 40)).substr(0);
  size_t readable = 0;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    Recording recording;
    const auto done = read_trace(std::string_view(bytes).substr(0, size), "x", recording);
    if (!done) {
      EXPECT_EQ(done.error().message.id, "not-a-trace");
      EXPECT_EQ(readable, 0u) << "a longer prefix cannot become unreadable, at " << size;
      continue;
    }
    ++readable;
  }
  EXPECT_GT(readable, bytes.size() / 2);
}

TEST(TraceReaderProperty, FlippedBitsNeverCrash) {
  const std::string bytes = small_trace().bytes();
  std::mt19937 random(11);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 3; ++flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1u << (random() % 8));
    }
    Recording recording;
    if (!read_trace(damaged, "x", recording)) continue;
    for (const Process& process : recording.processes) {
      EXPECT_EQ(test::broken_invariant(process), "");
    }
  }
}

}  // namespace
}  // namespace idlescope::read
