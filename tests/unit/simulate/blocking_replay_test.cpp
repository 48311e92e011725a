// What the truth charges to a blocking call against what the job saves without it: the same
// small program is run again with the call left out.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/simulate/device_labels.h"
#include "analysis/simulate/program_builder.h"

namespace idlescope::simulate {
namespace {

constexpr Ns kUs = 1000;

enum class Call : uint8_t { kItem, kDeviceSync, kEventSync, kPageableCopy };

OpSpec kernel(Ns ns) {
  OpSpec op;
  op.duration_ns = ns;
  return op;
}

OpSpec copy(trace::CopyKind kind, Ns ns, uint16_t stream) {
  OpSpec op;
  op.kind = trace::OP_MEMCPY;
  op.copy_kind = kind;
  op.duration_ns = ns;
  op.stream = stream;
  return op;
}

OpSpec memset(Ns ns) {
  OpSpec op;
  op.kind = trace::OP_MEMSET;
  op.duration_ns = ns;
  return op;
}

// One main thread that runs ahead, blocks once, and goes on.
class Job {
 public:
  explicit Job(bool blocks) : builder_(Machine{}, 1), blocks_(blocks) {
    main_ = builder_.thread(Role::kMain, 0, builder_.process(0));
  }
  void run(Ns ns, Leaf leaf = report::HOST_PYTHON) { builder_.run(main_, ns, leaf); }
  void launch(const OpSpec& op) { builder_.launch(main_, op); }
  void copy_async(Ns ns, uint16_t stream) {
    builder_.copy(main_, copy(trace::COPY_H2D, ns, stream), false, report::LAUNCH_LEAF);
  }
  void block(Call call) {
    if (!blocks_) return;
    switch (call) {
      case Call::kItem: {
        OpSpec op = copy(trace::COPY_D2H, 1600, kComputeStream);
        op.exposed_leaf = report::SYNC_SCALAR;
        builder_.blocking_copy(main_, op, true, report::SYNC_SCALAR);
        break;
      }
      case Call::kDeviceSync:
        builder_.device_sync(main_, 0, trace::CALL_DEVICE_SYNC, "cudaDeviceSynchronize", 0, 0,
                             report::SYNC_SCALAR);
        break;
      case Call::kEventSync:
        builder_.event_sync(main_, builder_.last_op(0, kComputeStream), report::SYNC_SCALAR);
        break;
      case Call::kPageableCopy: {
        OpSpec op = copy(trace::COPY_H2D, 20 * kUs, kComputeStream);
        op.exposed_leaf = report::SYNC_SCALAR;
        builder_.blocking_copy(main_, op, true, report::SYNC_SCALAR);
        break;
      }
    }
  }
  Program& program() { return builder_.program(); }

 private:
  ProgramBuilder builder_;
  bool blocks_;
  uint32_t main_ = 0;
};

Ns end_of(const Execution& run) {
  Ns end = 0;
  for (const OpRun& op : run.ops) end = std::max(end, op.end_ns);
  return end;
}

struct Outcome {
  Ns charged_ns = 0;
  Ns saved_ns = 0;
};

template <typename Write>
Outcome outcome(Write write) {
  Job with(true);
  Job without(false);
  write(&with);
  write(&without);
  Execution run = execute(with.program());
  EXPECT_TRUE(run.complete);
  Outcome out;
  for (const LabelledSpan& span : label_device(with.program(), run, 0)) {
    if (span.leaf == report::SYNC_SCALAR) out.charged_ns += span.end_ns - span.begin_ns;
  }
  out.saved_ns = end_of(run) - end_of(execute(without.program()));
  return out;
}

class SmallOpsBehind : public testing::TestWithParam<Call> {};

// Kernels of 1 ms are queued, the call waits for them, then 600 µs of Python: without the call
// all of that is hidden. What lies between the call and the next kernel does not matter.
TEST_P(SmallOpsBehind, DoNotEndTheAccountOfTheCall) {
  struct Between {
    const char* what;
    void (*write)(Job*);
  };
  const Between cases[] = {
      {"nothing", [](Job* j) { j->run(600 * kUs); }},
      {"copy on the stream",
       [](Job* j) {
         j->run(100 * kUs);
         j->copy_async(4 * kUs, kComputeStream);
         j->run(500 * kUs);
       }},
      {"copy on another stream",
       [](Job* j) {
         j->run(100 * kUs);
         j->copy_async(4 * kUs, kCopyStream);
         j->run(500 * kUs);
       }},
      {"memset",
       [](Job* j) {
         j->run(300 * kUs);
         j->launch(memset(2 * kUs));
         j->run(300 * kUs);
       }},
      {"small kernels",
       [](Job* j) {
         for (int i = 0; i < 6; ++i) {
           j->run(100 * kUs);
           j->launch(kernel(3 * kUs));
         }
       }},
      {"copies, memsets and kernels",
       [](Job* j) {
         for (int i = 0; i < 4; ++i) {
           j->run(70 * kUs);
           j->copy_async(3 * kUs, i % 2 == 0 ? kComputeStream : kCopyStream);
           j->run(50 * kUs);
           j->launch(memset(2 * kUs));
           j->run(30 * kUs);
           j->launch(kernel(3 * kUs));
         }
       }},
  };
  for (const Between& between : cases) {
    SCOPED_TRACE(between.what);
    Outcome out = outcome([&](Job* j) {
      for (int i = 0; i < 4; ++i) j->launch(kernel(1000 * kUs));
      j->block(GetParam());
      between.write(j);
      for (int i = 0; i < 4; ++i) j->launch(kernel(1000 * kUs));
    });
    EXPECT_GT(out.saved_ns, 550 * kUs);
    EXPECT_NEAR(static_cast<double>(out.charged_ns), static_cast<double>(out.saved_ns), 8e3);
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, SmallOpsBehind,
                         testing::Values(Call::kItem, Call::kDeviceSync, Call::kEventSync,
                                         Call::kPageableCopy));

// More host work than the call's wait: the rest is the host's own.
TEST(BlockingReplay, ChargesNoMoreThanItsWait) {
  Outcome out = outcome([](Job* j) {
    j->launch(kernel(300 * kUs));
    j->block(Call::kDeviceSync);
    j->run(100 * kUs);
    j->copy_async(4 * kUs, kComputeStream);
    j->run(5000 * kUs);
    j->launch(kernel(1000 * kUs));
  });
  EXPECT_LT(out.saved_ns, 320 * kUs);
  EXPECT_NEAR(static_cast<double>(out.charged_ns), static_cast<double>(out.saved_ns), 8e3);
}

// Once kernels wait in the queue again, later host work is not the call's doing.
TEST(BlockingReplay, EndsWhenTheQueueHasRecovered) {
  Outcome out = outcome([](Job* j) {
    for (int i = 0; i < 4; ++i) j->launch(kernel(1000 * kUs));
    j->block(Call::kDeviceSync);
    j->run(200 * kUs);
    for (int i = 0; i < 2; ++i) j->launch(kernel(100 * kUs));
    j->run(1500 * kUs);
    j->launch(kernel(1000 * kUs));
  });
  EXPECT_NEAR(static_cast<double>(out.charged_ns), 220e3, 10e3);
  EXPECT_GT(out.saved_ns, 1400 * kUs);  // either the call or the later work can go
}

TEST(BlockingReplay, ChargesWhatIsSavedInRandomPrograms) {
  constexpr int kPrograms = 400;
  double error = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    Draws d(seed);
    auto write = [&](Job* j) {
      int64_t backlog = d.uniform(1, 5, 1);
      for (int64_t i = 0; i < backlog; ++i) {
        j->launch(kernel(d.uniform(50, 900, 2, static_cast<uint64_t>(i)) * kUs));
      }
      auto call = static_cast<Call>(d.uniform(0, 3, 3));
      j->block(call);
      int64_t pieces = d.uniform(1, 9, 4);
      for (int64_t i = 0; i < pieces; ++i) {
        auto n = static_cast<uint64_t>(i);
        // Longer than any op below: nothing ever waits in the queue.
        j->run(d.uniform(20, 400, 5, n) * kUs);
        switch (d.uniform(0, 4, 6, n)) {
          case 0:
            j->copy_async(d.uniform(2, 9, 7, n) * kUs, kComputeStream);
            break;
          case 1:
            j->copy_async(d.uniform(2, 9, 7, n) * kUs, kCopyStream);
            break;
          case 2:
            j->launch(memset(d.uniform(1, 4, 7, n) * kUs));
            break;
          case 3:
            j->launch(kernel(d.uniform(2, 9, 7, n) * kUs));
            break;
          default:
            break;
        }
      }
      j->run(30 * kUs);
      for (int i = 0; i < 3; ++i) j->launch(kernel(2000 * kUs));
    };
    Outcome out = outcome(write);
    auto charged = static_cast<double>(out.charged_ns);
    auto saved = static_cast<double>(out.saved_ns);
    // An exposed copy counts even where the host work behind it would have hidden it.
    double own = d.uniform(0, 3, 3) == int64_t{3} ? 20e3 : 0;
    EXPECT_NEAR(charged, saved, 10e3 + 0.03 * saved + own);
    error += std::abs(charged - saved) / saved;
  }
  EXPECT_LT(error / kPrograms, 0.01);
}

}  // namespace
}  // namespace idlescope::simulate
