// What must hold for any input: sums are exact, names and the origin of time do not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "analysis/diagnose/ledger.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::test {
namespace {

using diagnose::analyze;
using diagnose::Diagnosis;

// Any nonsense: overlapping ops, calls out of order, unjoined ops, odd events.
Scene random_scene(uint32_t seed) {
  std::mt19937 random(seed);
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  Scene s;
  // Readers resolve name ids, so that an index is always one of the table.
  for (int i = 0; i < 10; ++i) s.recording().strings.add("name" + std::to_string(i));
  if (pick(2) == 0) s.window(-1, 1000);
  const int n = 5 + pick(200);
  double at = 0;
  for (int i = 0; i < n; ++i) {
    at += pick(4) == 0 ? number(0, 3) : number(0, 0.02);
    // 0: a thread whose number was lost.
    const uint32_t thread = pick(6) == 0 ? 0 : kMain + static_cast<uint32_t>(pick(3));
    const double length = pick(8) == 0 ? number(0, 2) : 0.005;
    uint32_t c = 0;
    switch (pick(8)) {
      case 0:
        c = s.copy_call(at, at + length, 1000, trace::COPY_H2D, thread);
        s.copy(trace::COPY_H2D, trace::MEMORY_PAGEABLE, static_cast<uint64_t>(pick(100000)),
               at + number(-0.1, 1), at + number(1, 2), c, static_cast<uint32_t>(7 + pick(3)));
        break;
      case 1:
        s.sync(at, at + length, thread);
        break;
      case 2:
        s.event(trace::EVENT_LOADER_NEXT, at, at + length,
                {.thread = thread, .iterator = 1, .batch = i, .a = pick(3)});
        break;
      case 3:
        s.event(static_cast<trace::HostEventKind>(pick(73)), at, at + length,
                {.thread = thread,
                 .iterator = static_cast<uint32_t>(pick(3)),
                 .batch = pick(5),
                 .a = pick(9) - 1,
                 .b = pick(9) - 1,
                 .c = pick(9) - 1});
        break;
      case 4:
        s.overhead(static_cast<trace::OverheadKind>(pick(10)), at, at + length, thread);
        break;
      case 5:
        s.memset(at, at + length, pick(2) == 0 ? 0 : s.launch(at, at + 0.001, thread));
        break;
      default:
        c = pick(10) == 0 ? 0 : s.launch(at, at + length, thread);
        s.kernel(at + number(-0.05, 0.1), at + number(0.1, 0.5), c,
                 static_cast<uint32_t>(7 + pick(3)), pick(5) == 0 ? "ncclDevKernel_x" : "k");
    }
    if (pick(10) == 0) s.step(at);
    at += pick(3) == 0 ? length : 0;
  }
  return s;
}

std::vector<std::pair<int, Ns>> leaves_of(const Diagnosis& d) {
  std::vector<std::pair<int, Ns>> out;
  for (const diagnose::DeviceDiagnosis& device : d.devices) {
    for (const diagnose::LeafTime& time : device.leaves) out.push_back({time.leaf, time.total_ns});
  }
  return out;
}

TEST(Properties, LeavesSumToTheWindowExactly) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Diagnosis d = analyze(random_scene(seed).take()).diagnosis;
    for (const diagnose::DeviceDiagnosis& device : d.devices) {
      ASSERT_EQ(sum_of_leaves(device), device.window_ns);
      ASSERT_GE(device.hidden_copy_ns, 0);
      for (const diagnose::LeafTime& time : device.leaves) {
        ASSERT_GT(time.total_ns, 0);
        ASSERT_EQ(time.grade_ns[0] + time.grade_ns[1] + time.grade_ns[2], time.total_ns);
      }
    }
    for (const diagnose::Gap& gap : d.gaps) {
      Ns sum = 0;
      for (const diagnose::GapPiece& piece : gap.pieces) sum += piece.end_ns - piece.begin_ns;
      ASSERT_EQ(sum, gap.end_ns - gap.begin_ns);
    }
  }
}

TEST(Properties, OriginOfTimeDoesNotMatter) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    read::Recording moved = random_scene(seed).take();
    const Diagnosis d = analyze(random_scene(seed).take()).diagnosis;
    constexpr Ns kBy = 123'456'789'012;
    for (read::Process& p : moved.processes) {
      for (read::Op& op : p.ops) op.begin_ns += kBy, op.end_ns += kBy;
      for (read::Call& call : p.calls) call.begin_ns += kBy, call.end_ns += kBy;
      for (read::HostEvent& event : p.host_events) event.begin_ns += kBy, event.end_ns += kBy;
      for (read::Overhead& o : p.overheads) o.begin_ns += kBy, o.end_ns += kBy;
      for (read::Window& w : p.windows) w.begin_ns += kBy, w.end_ns += kBy;
      p.first_ns += kBy, p.last_ns += kBy;
    }
    EXPECT_EQ(leaves_of(analyze(std::move(moved)).diagnosis), leaves_of(d));
  }
}

TEST(Properties, NumbersOfStreamsAndThreadsDoNotMatter) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Scene s = random_scene(seed);
    const Diagnosis d = analyze(random_scene(seed).take()).diagnosis;
    for (read::Stream& stream : s.here().streams) stream.stream_id += 1000;
    // 0 says that the number is not known.
    const auto renumber = [](uint32_t& thread) { thread += thread == 0 ? 0 : 50; };
    for (read::CallDescriptor& call : s.here().call_descriptors) renumber(call.thread_id);
    for (read::HostEvent& event : s.here().host_events) {
      renumber(event.thread_id);
      if (event.kind == trace::EVENT_LOADER_WORKER_STARTED) event.b += 50;
    }
    for (read::Overhead& o : s.here().overheads) renumber(o.thread_id);
    renumber(s.here().main_thread);
    // Streams in another order in the table, too.
    auto& streams = s.here().streams;
    const auto last = static_cast<uint32_t>(streams.size()) - 1;
    std::reverse(streams.begin(), streams.end());
    for (read::OpDescriptor& op : s.here().op_descriptors) op.stream = last - op.stream;
    for (read::CallDescriptor& call : s.here().call_descriptors) {
      if (call.stream != read::kNone) call.stream = last - call.stream;
    }
    EXPECT_EQ(leaves_of(analyze(s.take()).diagnosis), leaves_of(d));
  }
}

TEST(Properties, OrderInTheFileDoesNotMatter) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Scene s = random_scene(seed);
    const Diagnosis d = analyze(random_scene(seed).take()).diagnosis;
    std::mt19937 random(seed);
    std::shuffle(s.here().ops.begin(), s.here().ops.end(), random);
    std::shuffle(s.here().calls.begin(), s.here().calls.end(), random);
    std::shuffle(s.here().host_events.begin(), s.here().host_events.end(), random);
    EXPECT_EQ(leaves_of(analyze(s.take()).diagnosis), leaves_of(d));
  }
}

TEST(Properties, HalvesMergeToTheWhole) {
  diagnose::Ledger whole({{0, 1000}});
  diagnose::Ledger halves({{0, 400}, {400, 1000}});
  std::mt19937 random(7);
  Ns at = 0;
  while (at < 1000) {
    diagnose::Piece piece;
    piece.begin_ns = at;
    at += std::uniform_int_distribution<Ns>(1, 90)(random);
    piece.end_ns = at;
    piece.leaf = diagnose::kLeaves[std::uniform_int_distribution<size_t>(
        0, diagnose::kLeafCount - 1)(random)];
    whole.add(piece);
    halves.add(piece);
  }
  EXPECT_TRUE(whole.close());
  EXPECT_TRUE(halves.close());
  EXPECT_EQ(whole.totals(), halves.totals());
  for (size_t l = 0; l < diagnose::kLeafCount; ++l) {
    EXPECT_EQ(halves.row(0)[l] + halves.row(1)[l], whole.totals()[l]);
  }
}

TEST(Properties, SumBeyondASpanIsOurBugAndThrows) {
  diagnose::Ledger ledger({{0, 10}});
  diagnose::Piece piece;
  piece.end_ns = 10;
  piece.leaf = report::DISPATCH;
  ledger.add(piece);
  ledger.add(piece);
  EXPECT_THROW(ledger.close(), std::logic_error);
}

TEST(Properties, EmptyRecordingsSaySo) {
  read::Recording nothing;
  const Diagnosis d = analyze(std::move(nothing)).diagnosis;
  EXPECT_EQ(d.verdict, report::CANNOT_TELL);
  EXPECT_EQ(d.reason, diagnose::Reason::kNothing);
  read::Recording silent;
  silent.processes.emplace_back();
  EXPECT_EQ(analyze(std::move(silent)).diagnosis.reason, diagnose::Reason::kNothing);
}

}  // namespace
}  // namespace idlescope::test
