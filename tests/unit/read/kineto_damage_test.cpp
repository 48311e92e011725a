// The PyTorch profiler importer on damaged, foreign, misleading and huge files.
#include "analysis/read/kineto_json.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "analysis/read/recording.h"
#include "proto/messages.h"
#include "tests/unit/read/gzip.h"
#include "tests/unit/read/kineto_text.h"

namespace idlescope::read {
namespace {

using namespace kineto_text;
using test::gzip;

TEST(KinetoDamage, EveryPrefixOfAFileIsReadable) {
  const std::string text = object(call(5, "100", "10") + ",\n" + kernel(5, "120", "30"),
                                  R"("schemaVersion":1,"trace":{"a":["x",{}]},)");
  for (size_t size = 1; size < text.size(); ++size) {
    const Imported got = import(text.substr(0, size));
    if (got.done) {
      EXPECT_TRUE(got.recording.truncated) << size;
      EXPECT_EQ(got.anomaly(messages::kJsonTruncated), 1u);
    }
  }
}

TEST(KinetoDamage, OneBrokenEventCostsOneEvent) {
  const std::string broken =
      R"({"ph":"X","cat":"kernel","name":"lost quote,"pid":0,"tid":7,"ts":1,"dur":1})";
  const std::string text = "{\"schemaVersion\":1,\"traceEvents\":[\n" + kernel(1, "10", "1") +
                           ",\n" + broken + ",\n" + kernel(2, "20", "1") + ",\n" +
                           kernel(3, "30", "1") + "\n]}";
  const Imported got = import(text);
  ASSERT_TRUE(got.done) << got.done.error().text();
  EXPECT_EQ(got.process().ops.size(), 3u);
  EXPECT_EQ(got.anomaly(messages::kJsonBadEvents), 1u);
}

TEST(KinetoDamage, TrailingCommaInsideArgsIsOneBadEventAtMost) {
  const Imported got =
      import(object(R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"a":1,}},)" +
                    kernel(2, "20", "1")));
  ASSERT_TRUE(got.done);
  EXPECT_GE(got.process().ops.size(), 1u);
}

TEST(KinetoDamage, NanNegativeHugeAndMissing) {
  const Imported got = import(object(
      kernel(1, "10", "1") + "," + kernel(2, "NaN", "1") + "," + kernel(3, "20", "-5") + "," +
      kernel(4, "30", "1e300") + "," + kernel(5, "Infinity", "1") + "," +
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":50,"dur":1,)"
      R"("args":{"correlation":10159970886766084423}},)"
      R"({"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":0,"tid":1,"ts":200,"dur":100,)"
      R"("args":{"Comms Id":10159970886766084423}})"));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.process().ops.size(), 2u);
  EXPECT_EQ(got.anomaly(messages::kImportBadNumbers), 4u);
  EXPECT_EQ(got.anomaly(messages::kImportBadTimes), 1u);
  EXPECT_EQ(got.anomaly(messages::kImportHugeIds), 1u);
  EXPECT_EQ(got.process().ops[1].call, kNone);
}

TEST(KinetoDamage, RepeatedKeysAndRecords) {
  const std::string twice =
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"ts":99,"dur":1})";
  const Imported got =
      import(object(twice + "," + kernel(1, "10", "5") + "," + kernel(1, "10", "5")));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.anomaly(messages::kJsonRepeatedKeys), 1u);
  EXPECT_EQ(got.anomaly(messages::kImportRepeated), 1u);
  ASSERT_EQ(got.process().ops.size(), 2u);
  EXPECT_EQ(got.process().ops[1].begin_ns, 99'000);
}

TEST(KinetoDamage, DeepNestingAndEmptyEvents) {
  const std::string deep =
      R"({"ph":"X","args":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const Imported got = import(object(deep + ",{}," + kernel(1, "10", "5") + ",{}"));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.process().ops.size(), 1u);
}

TEST(KinetoDamage, AnEventLargerThanTheLimitIsSkipped) {
  const std::string huge = R"({"ph":"X","cat":"kernel","name":")" + std::string(9u << 20, 'x') +
                           R"(","pid":0,"tid":7,"ts":1,"dur":1})";
  const Imported got = import(object(huge + "," + kernel(1, "10", "5")));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.process().ops.size(), 1u);
  EXPECT_EQ(got.anomaly(messages::kJsonBadEvents), 1u);
}

TEST(KinetoDamage, CutGzipKeepsWhatWasRead) {
  std::string events = kernel(1, "10", "1");
  for (int i = 2; i < 4000; ++i) events += ",\n" + kernel(i, std::to_string(i * 10), "1");
  std::string packed = gzip(object(events));
  packed.resize(packed.size() / 2);
  const Imported got = import(packed, "x.json.gz");
  ASSERT_TRUE(got.done);
  EXPECT_GT(got.process().ops.size(), 100u);
  EXPECT_EQ(got.anomaly(messages::kGzipDamaged), 1u);
  EXPECT_TRUE(got.recording.truncated);
}

TEST(KinetoDamage, GzipBombIsRefusedQuickly) {
  const std::string packed = gzip(R"({"traceEvents":[)" + std::string(120u << 20, ' ') + "]}");
  ASSERT_LT(packed.size(), size_t{1} << 20);
  const Imported got = import(packed, "x.json.gz");
  ASSERT_FALSE(got.done);
  EXPECT_EQ(got.done.error().message.id, "expands-too-much");
}

// The stated bound: the tables plus 24 MiB, whatever the size of the text. 64 MiB of rows that
// leave nothing behind must pass in 24 MiB more than the process has.
TEST(KinetoLimits, MemoryDoesNotGrowWithTheText) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "address space is not what it seems under AddressSanitizer";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "address space is not what it seems under AddressSanitizer";
#endif
#endif
  std::string events;
  for (uint64_t i = 0; events.size() < (64u << 20); ++i) {
    events +=
        fmt::format(R"({{"ph":"s","id":{},"pid":9,"tid":{},"ts":{},"cat":"ac2g","name":"ac2g"}},)",
                    i, i * 7919 % 1000, i * 104729);
    events += '\n';
  }
  const std::string packed = gzip(object(events + kernel(1, "10", "5")));
  events = std::string();
  const pid_t child = fork();
  if (child == 0) {
    std::FILE* statm = std::fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (statm == nullptr || std::fscanf(statm, "%lu", &pages) != 1) _exit(3);
    std::fclose(statm);
    const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (24u << 20);
    const rlimit bound{limit, limit};
    if (setrlimit(RLIMIT_AS, &bound) != 0) _exit(4);
    Recording recording;
    const auto done = import_kineto(packed, "x.json.gz", recording);
    _exit(done && recording.processes[0].ops.size() == 1 ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// ---- foreign files

TEST(KinetoForeign, EachIsNamed) {
  const auto what = [](const std::string& text) {
    const Imported got = import(text);
    EXPECT_FALSE(got.done);
    return got.done ? std::string() : got.done.error().text();
  };
  EXPECT_NE(what(R"({"traceEvents":[{"ph":"M","pid":0,"name":"process_name","args":{"name":)"
                 R"("/device:GPU:0"}},{"ph":"X","pid":0,"tid":1,"ts":1,"dur":1,"name":"k"},{}]})")
                .find("TensorFlow"),
            std::string::npos);
  EXPECT_NE(what("[\n{\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,"
                 "\"ph\":\"X\",\"args\":{}}\n")
                .find("DFTracer"),
            std::string::npos);
  EXPECT_NE(what(R"([{"ph":"B","name":"NEGOTIATE_ALLREDUCE","ts":1,"pid":1}])").find("Horovod"),
            std::string::npos);
  EXPECT_NE(what(R"({"traceEvents":[{"pid":1,"tid":1,"ts":1.5,"ph":"X","name":"cuMemAlloc_v2",)"
                 R"("dur":2}]})")
                .find("CUDA calls"),
            std::string::npos);
  EXPECT_NE(what(object(R"({"ph":"X","cat":"mtia_runtime","name":"x","pid":1,"tid":1,"ts":1,)"
                        R"("dur":1})"))
                .find("accelerator"),
            std::string::npos);
  EXPECT_NE(what(R"({"name":"a-package","version":"1.0"})").find("traceEvents"), std::string::npos);
  EXPECT_NE(what(object("")).find("without a single event"), std::string::npos);
}

TEST(KinetoForeign, WhatIsNoListOfEventsIsNoEmptyProfile) {
  for (const char* text : {"[[1715, 1716], [[1, 2], [3, 4]]]", "[ts],dur\n1,2\n", "[1, 2, 3]"}) {
    const Imported got = import(text);
    ASSERT_FALSE(got.done);
    EXPECT_EQ(got.done.error().message.id, "not-a-trace") << text;
  }
  const Imported lines = import(call(1, "1", "1") + "\n" + kernel(1, "2", "1") + "\n");
  ASSERT_FALSE(lines.done);
  EXPECT_NE(lines.done.error().text().find("one JSON object a line"), std::string::npos);
  const Imported operators = import(R"({"schema": "1.1.1", "pid": 5, "nodes": [{"id": 1}]})");
  ASSERT_FALSE(operators.done);
  EXPECT_NE(operators.done.error().text().find("execution trace"), std::string::npos);
}

// ---- files that would give a false verdict

TEST(KinetoMisleading, MergedProcessesAreRefused) {
  std::string other = call(5, "500", "10");
  other.replace(other.find("\"pid\":9"), 7, "\"pid\":8");
  const Imported got =
      import(object(call(5, "100", "10") + "," + kernel(5, "120", "30") + "," + other));
  ASSERT_FALSE(got.done);
  EXPECT_EQ(got.done.error().message.id, "import-merged");
  EXPECT_NE(got.done.error().text().find("2 processes"), std::string::npos);
}

TEST(KinetoMisleading, OtherUnitsOfTimeAreNoticed) {
  const auto loop = [](const char* launch, const char* run) {
    std::string events;
    for (int i = 1; i <= 100; ++i) {
      events += call(i, std::to_string(i * 100000), launch) + "," +
                kernel(i, std::to_string(i * 100000 + 50), run) + ",";
    }
    events.pop_back();
    return import(object(events));
  };
  const Imported seconds = loop("0.000008", "0.0005");
  ASSERT_FALSE(seconds.done);
  EXPECT_EQ(seconds.done.error().message.id, "import-time-unit");
  EXPECT_FALSE(loop("0.008", "0.5").done) << "milliseconds: launches of 8 ns";
  EXPECT_EQ(loop("8000", "50000").anomaly(messages::kImportLongTimes), 1u) << "nanoseconds";
  const Imported microseconds = loop("8", "500");
  ASSERT_TRUE(microseconds.done);
  EXPECT_TRUE(microseconds.recording.anomalies.empty());
}

TEST(KinetoMisleading, RowsThatSayNothingAreNoVerdict) {
  const Imported none = import(object(kernel(1, "1e99", "1") + "," + kernel(2, "null", "1")));
  ASSERT_FALSE(none.done);
  EXPECT_EQ(none.done.error().message.id, "import-no-times");
  EXPECT_NE(none.done.error().text().find("1e99"), std::string::npos);
  std::string nameless = call(5, "100", "10", "");
  const Imported got = import(object(nameless + "," + kernel(5, "120", "30")));
  ASSERT_TRUE(got.done);
  EXPECT_TRUE(got.process().calls.empty());
  EXPECT_EQ(got.process().ops.size(), 1u);
  EXPECT_EQ(got.anomaly(messages::kImportNameless), 1u);
}

TEST(KinetoMisleading, AbsurdNumbersDoNotOverflow) {
  const std::string nccl =
      R"({"ph":"X","cat":"kernel","name":"nccl","pid":0,"tid":9,"ts":50,"dur":10,"args":{)"
      R"("Collective name":"allreduce","In msg nelems":4611686018427387904,"dtype":"Double",)"
      R"("Group size":1099511627776}})";
  const Imported got =
      import(object(nccl + "," + kernel(1, "2305843009213692", "1") + "," +
                        kernel(2, "-2305843009213692", "1") + "," + kernel(3, "60", "1"),
                    "", R"(,"baseTimeNanoseconds":9223372036854775807)"));
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.process().collectives[0].bytes, 0u);
  EXPECT_EQ(got.process().collectives[0].ranks, 0u);
  EXPECT_EQ(got.anomaly(messages::kImportBaseTime), 1u);
  EXPECT_EQ(got.process().ops.size(), 4u);
  // Longer than any recording.
  EXPECT_EQ(import(object(kernel(1, "1", "1e13") + "," + kernel(2, "1", "1")))
                .anomaly(messages::kImportBadTimes),
            1u);
}

TEST(KinetoMisleading, ASecondFileBehindTheFirstIsSaid) {
  const std::string one = object(call(5, "100", "10") + "," + kernel(5, "120", "30"));
  const Imported got = import(one + "\n" + one);
  ASSERT_TRUE(got.done);
  EXPECT_EQ(got.process().ops.size(), 1u);
  EXPECT_EQ(got.anomaly(messages::kJsonTrailing), 1u);
  EXPECT_TRUE(import(one + " \n" + std::string(3, '\0')).recording.anomalies.empty());
}

}  // namespace
}  // namespace idlescope::read
