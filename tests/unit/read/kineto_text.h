// Short PyTorch profiles as text, and what the importer makes of them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "analysis/read/kineto_json.h"
#include "analysis/read/recording.h"
#include "tests/unit/read/describe.h"

namespace idlescope::read::kineto_text {

struct Imported {
  Recording recording;
  Expected<void> done;
  const Process& process() const { return recording.processes.at(0); }
  uint64_t anomaly(const messages::Message& message) const {
    uint64_t count = 0;
    for (const Anomaly& entry : recording.anomalies) {
      if (entry.message.id == message.id) count += entry.count;
    }
    return count;
  }
};

inline Imported import(const std::string& text, const std::string& path = "x.json") {
  Imported result;
  result.done = import_kineto(text, path, result.recording);
  for (const Process& process : result.recording.processes) {
    EXPECT_EQ(test::broken_invariant(process), "");
  }
  return result;
}

inline std::string call(int corr, const std::string& ts, const std::string& dur,
                        const char* name = "cudaLaunchKernel") {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"{}","pid":9,"tid":9,"ts":{},"dur":{},)"
      R"("args":{{"cbid":211,"correlation":{}}}}})",
      name, ts, dur, corr);
}
inline std::string kernel(int corr, const std::string& ts, const std::string& dur) {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{},"dur":{},"args":)"
      R"({{"device":0,"context":1,"stream":7,"correlation":{},"registers per thread":38,)"
      R"("shared memory":16,"grid":[50,2,1],"block":[256,1,1]}}}})",
      ts, dur, corr);
}
inline std::string object(const std::string& events,
                          const std::string& before = R"("schemaVersion":1,)",
                          const std::string& after = "") {
  return "{" + before + R"("traceEvents":[)" + events + "]" + after + "}";
}

}  // namespace idlescope::read::kineto_text
