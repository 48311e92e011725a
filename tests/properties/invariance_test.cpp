// A report is about what happened, not about how it was written down: when the clock began,
// which numbers streams have, in which order packets arrived and which of its two forms the
// format gave the times change nothing in it.
#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "tests/properties/recordings.h"

namespace idlescope::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Points in time of a report are named begin_ns and end_ns; all else there are durations.
void move_times(Message* message, int64_t by_ns) {
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) {
        move_times(reflection->MutableMessage(message, field), by_ns);
      } else if (!field->is_map()) {
        for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
          move_times(reflection->MutableRepeatedMessage(message, field, i), by_ns);
        }
      }
    } else if (field->name() == "begin_ns" || field->name() == "end_ns") {
      reflection->SetInt64(message, field, reflection->GetInt64(*message, field) + by_ns);
    }
  }
}

void expect_same(report::Report expected, report::Report got) {
  // How many bytes the same packets take is no part of the story.
  expected.mutable_cost()->clear_trace_bytes();
  got.mutable_cost()->clear_trace_bytes();
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(expected, got)) << difference.substr(0, 2000);
}

class Invariance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const auto& [name, bytes] : files_of(GetParam())) {
      files_.push_back({name, packets_of(bytes)});
    }
    ASSERT_FALSE(files_.empty());
    base_ = answer();
  }

  report::Report answer() {
    Files files;
    for (const RecordedFile& file : files_) files.emplace_back(file.name, bytes_of(file.packets));
    const Answer answer = answer_to(files);
    EXPECT_TRUE(answer.read) << answer.fault;
    return answer.report;
  }

  std::vector<RecordedFile> files_;
  report::Report base_;
};

TEST_P(Invariance, TheReportSaysSomething) {
  EXPECT_GT(base_.leaves_size(), 0);
  EXPECT_GT(base_.devices_size(), 0);
}

TEST_P(Invariance, OriginOfTimeDoesNotMatter) {
  constexpr int64_t kBy = 7'123'456'789'013;
  for (RecordedFile& file : files_) shift_time(file.packets, kBy);
  report::Report moved = answer();
  move_times(&moved, -kBy);
  expect_same(base_, moved);
}

TEST_P(Invariance, NumbersOfStreamsDoNotMatter) {
  for (RecordedFile& file : files_) renumber_streams(file.packets);
  expect_same(base_, answer());
}

TEST_P(Invariance, FormOfTheTimesDoesNotMatter) {
  for (RecordedFile& file : files_) write_other_form(file.packets);
  expect_same(base_, answer());
}

TEST_P(Invariance, OrderOfPacketsDoesNotMatter) {
  uint32_t seed = 1;
  for (RecordedFile& file : files_) shuffle(file.packets, seed++);
  expect_same(base_, answer());
}

std::vector<std::string> all_names() {
  std::vector<std::string> names = simulated_names();
  for (std::string& name : real_names()) names.push_back(std::move(name));
  return names;
}

INSTANTIATE_TEST_SUITE_P(Recordings, Invariance, testing::ValuesIn(all_names()),
                         [](const auto& one) { return test_name(one.param); });

}  // namespace
}  // namespace idlescope::test
