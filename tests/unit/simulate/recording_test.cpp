// What the recorder's view keeps, and that the same seed gives the same bytes.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "analysis/simulate/loop_program.h"
#include "analysis/simulate/scenario_sets.h"

namespace idlescope::simulate {
namespace {

struct Made {
  Scenario scenario;
  Program program;
  Execution run;
  std::vector<RecordedProcess> files;
};

Made make(const char* cause, const char* profile, uint64_t seed,
          void (*change)(Scenario*) = nullptr) {
  Made m;
  m.scenario = single_scenario(cause, "", 0.2, profile, seed);
  m.scenario.causes[0].amount_ns = 3000000;
  if (change != nullptr) change(&m.scenario);
  m.program = build_loop(job(m.scenario));
  m.run = execute(m.program);
  m.files = record(m.program, m.run, m.scenario.view);
  return m;
}

TEST(Recording, SameSeedSameBytes) {
  Made a = make("data-storage", "lossy", 5);
  Made b = make("data-storage", "lossy", 5);
  ASSERT_EQ(a.files.size(), b.files.size());
  for (size_t i = 0; i < a.files.size(); ++i) {
    EXPECT_EQ(a.files[i].trace.SerializeAsString(), b.files[i].trace.SerializeAsString());
  }
}

TEST(Recording, OneFilePerProcessAndHeaderFirst) {
  Made m = make("data-cpu", "clean", 5);
  EXPECT_EQ(m.files.size(), m.program.processes.size());
  std::set<std::string> names;
  for (const RecordedProcess& f : m.files) {
    names.insert(f.file_name);
    ASSERT_GT(f.trace.packet_size(), 1);
    EXPECT_TRUE(f.trace.packet(0).has_header());
  }
  EXPECT_EQ(names.size(), m.files.size());
}

// Every op has its call, with the same correlation, and begins after it.
TEST(Recording, OpsJoinTheirCalls) {
  Made m = make("sync", "clean", 9);
  std::map<uint32_t, int64_t> calls;
  uint64_t ops = 0;
  for (const trace::Packet& p : m.files[0].trace.packet()) {
    if (!p.has_host_calls()) continue;
    const trace::HostCallBatch& b = p.host_calls();
    int64_t at = b.base_ns();
    uint32_t correlation = 0;
    for (int i = 0; i < b.descriptor_id_size(); ++i) {
      at += b.begin_delta_ns(i);
      correlation += static_cast<uint32_t>(b.correlation_delta(i));
      calls.try_emplace(correlation, at);
    }
  }
  for (const trace::Packet& p : m.files[0].trace.packet()) {
    if (!p.has_gpu_ops()) continue;
    const trace::GpuOpBatch& b = p.gpu_ops();
    int64_t at = b.base_ns();
    uint32_t correlation = 0;
    for (int i = 0; i < b.descriptor_id_size(); ++i) {
      at += b.begin_delta_ns(i);
      correlation += static_cast<uint32_t>(b.correlation_delta(i));
      auto call = calls.find(correlation);
      ASSERT_NE(call, calls.end());
      EXPECT_GT(at, call->second);
      ++ops;
    }
  }
  EXPECT_GT(ops, 1000U);
}

TEST(Recording, RemovedKindsAreGoneAndNotListed) {
  Made m = make("sync", "clean", 9, [](Scenario* s) {
    s->view.removed = {trace::KIND_CALL_SYNC, trace::KIND_STEP};
  });
  std::set<uint32_t> syncs;
  for (const trace::Packet& p : m.files[0].trace.packet()) {
    for (const trace::HostCallDescriptor& d : p.descriptors().host_call()) {
      EXPECT_NE(d.call_class(), trace::CALL_STREAM_SYNC);
    }
    for (const trace::HostEvent& e : p.host_events().event())
      EXPECT_NE(e.kind(), trace::EVENT_STEP);
    for (int kind : p.window_begin().kinds()) EXPECT_NE(kind, trace::KIND_CALL_SYNC);
  }
}

TEST(Recording, LossesAreCounted) {
  Made m = make("host", "lossy", 9, [](Scenario* s) { s->view.drop_per_million = 50000; });
  uint64_t lost = 0;
  uint64_t kept = 0;
  for (const trace::Packet& p : m.files[0].trace.packet()) {
    if (p.loss().loss_kind() == trace::LOSS_CUPTI_DROPPED) lost += p.loss().count();
    kept += static_cast<uint64_t>(p.gpu_ops().descriptor_id_size());
  }
  EXPECT_NEAR(static_cast<double>(lost) / static_cast<double>(lost + kept), 0.05, 0.01);
}

TEST(Recording, FetchCountersTellReadingFromDecoding) {
  Made read = make("data-storage", "clean", 5);
  Made decode = make("data-cpu", "clean", 5);
  auto cpu_share = [](const Made& m) {
    double cpu = 0;
    double wall = 0;
    for (const RecordedProcess& f : m.files) {
      for (const trace::Packet& p : f.trace.packet()) {
        for (const trace::HostEvent& e : p.host_events().event()) {
          if (e.kind() != trace::EVENT_WORKER_FETCH_CPU) continue;
          cpu += static_cast<double>(e.a());
          wall += static_cast<double>(e.end_ns() - e.begin_ns());
        }
      }
    }
    return cpu / wall;
  };
  EXPECT_LT(cpu_share(read), 0.5);
  EXPECT_GT(cpu_share(decode), 0.8);
}

// Nuisances come after the truth: they change the recording and not the job.
TEST(Recording, NuisancesLeaveTheTruthAlone) {
  Made a = make("host", "clean", 9);
  Made b = make("host", "clean", 9, [](Scenario* s) {
    s->view.clock_error_ns = 20000;
    s->view.drop_per_million = 5000;
    s->view.rename_kernels = true;
  });
  truth::Truth x = truth_of(a.scenario, a.program, a.run);
  truth::Truth y = truth_of(b.scenario, b.program, b.run);
  EXPECT_EQ(x.SerializeAsString(), y.SerializeAsString());
  EXPECT_NE(a.files[0].trace.SerializeAsString(), b.files[0].trace.SerializeAsString());
}

}  // namespace
}  // namespace idlescope::simulate
