// Gates: what a condition may look like, and when it is met.
#include "analysis/report/fail_if.h"

#include "tests/unit/report/report_fixture.h"

namespace idlescope::report {
namespace {

bool met(const std::string& text, const Report& report) {
  const auto condition = parse_condition(text);
  EXPECT_TRUE(condition.has_value()) << text;
  if (!condition) return false;
  const auto result = check(*condition, report);
  EXPECT_TRUE(result.has_value()) << text;
  return result && result->met;
}

TEST(FailIf, ComparesSharesOfTheStep) {
  const Report report = report_from("input_bound.textproto");  // DATA 38.2 %, compute 53.3 %
  EXPECT_TRUE(met("DATA>10%", report));
  EXPECT_FALSE(met("DATA>40%", report));
  EXPECT_TRUE(met(" data >= 38 % ", report));
  EXPECT_TRUE(met("BUSY<80%", report));
  EXPECT_FALSE(met("BUSY<50%", report));
  EXPECT_FALSE(met("UNKNOWN>0%", report));
  EXPECT_TRUE(met("UNKNOWN<=0%", report));
  EXPECT_TRUE(met("STEP>211ms", report));
  EXPECT_FALSE(met("STEP>0.3s", report));
  EXPECT_TRUE(met("SYNC>2.3%", report));
  EXPECT_FALSE(met("SYNC>2.5%", report));
}

TEST(FailIf, StallsOfTheRunCountWhereWindowsMissThem) {
  Report report = report_from("input_bound.textproto");
  EXPECT_FALSE(met("STARTUP>5%", report));
  RunStall* stall = report.add_stalls();
  stall->set_verdict(STARTUP);
  stall->set_share_of_run(0.3);
  EXPECT_TRUE(met("STARTUP>5%", report));
}

TEST(FailIf, SaysWhatWasFound) {
  const Report report = report_from("input_bound.textproto");
  EXPECT_EQ(check(*parse_condition("DATA>10%"), report)->text,
            "gate failed: DATA is 38 %, limit 10 %");
  EXPECT_EQ(check(*parse_condition("STEP>1s"), report)->text,
            "gate passed: STEP is 212 ms, limit 1 s");
}

TEST(FailIf, NoNumberIsNoPass) {
  const Report empty;
  for (const char* text : {"DATA>10%", "BUSY<80%", "STEP>1s", "UNKNOWN>1%"}) {
    const auto result = check(*parse_condition(text), empty);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().message.id, "fail-if-no-number");
  }
}

TEST(FailIf, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"", "DATA", "DATA>", "DATA>10", "DATA=10%", "DATE>10%", "STEP>10%", "DATA>10ms", ">10%",
        "DATA>-1%", "DATA>1e3%", "DATA>nan%", "CANNOT_TELL>1%", "DATA>>1%", "DATA>1.2.3%"}) {
    const auto condition = parse_condition(text);
    ASSERT_FALSE(condition.has_value()) << text;
    EXPECT_EQ(condition.error().message.id, "fail-if-syntax");
  }
}

}  // namespace
}  // namespace idlescope::report
