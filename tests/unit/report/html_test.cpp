// The HTML report: one file, no requests, nothing of the trace can become markup.
#include "analysis/report/html.h"

#include <google/protobuf/reflection.h>

#include <set>

#include "analysis/report/html/assets.h"
#include "analysis/report/html/markup.h"
#include "tests/unit/report/report_fixture.h"

namespace idlescope::report {
namespace {

size_t occurrences(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Sets every string of the message and below to `value`.
void poison(google::protobuf::Message* message, const std::string& value) {
  const auto* reflection = message->GetReflection();
  const auto* descriptor = message->GetDescriptor();
  using Field = google::protobuf::FieldDescriptor;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const Field* field = descriptor->field(i);
    if (field->cpp_type() == Field::CPPTYPE_STRING) {
      if (field->is_repeated()) {
        reflection->AddString(message, field, value);
      } else {
        reflection->SetString(message, field, value);
      }
    } else if (field->cpp_type() == Field::CPPTYPE_MESSAGE && !field->is_map()) {
      if (!field->is_repeated()) {
        if (reflection->HasField(*message, field))
          poison(reflection->MutableMessage(message, field), value);
        continue;
      }
      if (reflection->FieldSize(*message, field) == 0) reflection->AddMessage(message, field);
      for (int k = 0; k < reflection->FieldSize(*message, field); ++k) {
        poison(reflection->MutableRepeatedMessage(message, field, k), value);
      }
    }
  }
}

TEST(Html, OpensOnTheSentenceAndOneBar) {
  const std::string html = to_html(report_from("input_bound.textproto"), Language::kEnglish);
  EXPECT_EQ(html.rfind("<!DOCTYPE html>", 0), 0u);
  const size_t answer = html.find("id=\"answer\"");
  const size_t sentence = html.find("Your GPU waits for data.", answer);
  const size_t bar = html.find("class=\"bar\"");
  const size_t step = html.find("id=\"step\"");
  EXPECT_LT(answer, sentence);
  EXPECT_LT(sentence, bar);
  EXPECT_LT(bar, step);
  EXPECT_EQ(occurrences(html, "class=\"bar\""), 1u);
  for (const char* page : {"answer", "step", "loading", "gpu", "run", "sure"}) {
    EXPECT_EQ(occurrences(html, std::string("<section id=\"") + page + "\""), 1u) << page;
    // The skip link leads to the answer, too.
    EXPECT_EQ(occurrences(html, std::string("href=\"#") + page + "\""),
              page == std::string("answer") ? 2u : 1u)
        << page;
  }
  EXPECT_EQ(occurrences(html, "<section"), occurrences(html, "</section>"));
  EXPECT_EQ(occurrences(html, "<div"), occurrences(html, "</div>"));
  EXPECT_EQ(occurrences(html, "<table"), occurrences(html, "</table>"));
}

TEST(Html, MakesNoRequestAndRunsOnlyItsOwnScripts) {
  const std::string html = to_html(report_from("input_bound.textproto"), Language::kEnglish);
  EXPECT_NE(html.find("Content-Security-Policy"), std::string::npos);
  EXPECT_NE(html.find("default-src &#39;none&#39;"), std::string::npos);
  EXPECT_EQ(html.find("script-src &#39;unsafe"), std::string::npos);
  EXPECT_EQ(html.find(" src="), std::string::npos);
  EXPECT_EQ(html.find("@import"), std::string::npos);
  EXPECT_EQ(html.find("url(http"), std::string::npos);
  EXPECT_LT(html.size(), 2'000'000u);
}

TEST(Html, NothingOfTheTraceBecomesMarkup) {
  const std::string evil =
      "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' onclick=\"x";
  Report report = report_from("input_bound.textproto");
  report.mutable_source();
  report.mutable_loader()->set_seen(true);
  report.mutable_check();
  report.mutable_source()->mutable_chosen();
  poison(&report, evil);
  for (const Language language : {Language::kEnglish, Language::kChinese}) {
    const std::string clean = to_html(report_from("input_bound.textproto"), language);
    const std::string html = to_html(report, language);
    EXPECT_EQ(occurrences(html, "<script"), occurrences(clean, "<script"));
    EXPECT_EQ(occurrences(html, "</script"), occurrences(clean, "</script"));
    EXPECT_EQ(html.find("<img"), std::string::npos);
    EXPECT_EQ(html.find("' onclick=\""), std::string::npos);
    EXPECT_NE(html.find("&lt;img"), std::string::npos) << "the names are shown, as text";
  }
}

TEST(Html, SurvivesBrokenUtf8AndControlCharacters) {
  Report report = report_from("input_bound.textproto");
  poison(&report, std::string("a\xff\xfe\x01\x1b[2J\xed\xa0\x80z"));
  const std::string html = to_html(report, Language::kEnglish);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find("\xed\xa0\x80"), std::string::npos);
}

TEST(Html, DoesNotGrowWithTheTrace) {
  Report report = report_from("input_bound.textproto");
  for (int i = 0; i < 300'000; ++i) {
    StepPoint* point = report.add_step_points();
    point->set_begin_ns(i * 1'000'000LL);
    point->set_duration_ns(900'000 + i % 1000);
  }
  TypicalStep* timeline = report.add_timelines();
  timeline->set_which("typical");
  timeline->set_end_ns(1'000'000'000);
  Lane* lane = timeline->add_lane();
  lane->set_group("gpu");
  for (int i = 0; i < 200'000; ++i) {
    Bar* bar = lane->add_bar();
    bar->set_begin_ns(i * 5000LL);
    bar->set_end_ns(i * 5000LL + 4000);
    bar->set_label("kernel");
    bar->set_batch(-1);
    bar->set_gap_index(-1);
  }
  const std::string html = to_html(report, Language::kEnglish);
  EXPECT_LT(html.size(), 2'000'000u);
  EXPECT_NE(html.find(" x kernel"), std::string::npos) << "small bars are drawn together";
}

TEST(Html, LongNamesAndLongTablesDoNotBuryThePage) {
  Report report = report_from("input_bound.textproto");
  for (int i = 0; i < 40; ++i) {
    KernelSummary* kernel = report.add_kernels();
    kernel->set_name("void at::native::reduce_kernel<" + std::to_string(i) + ", Op<float> >(int)");
    kernel->set_count(10);
    kernel->set_total_ns(1'000'000);
    kernel->set_label("tiny");
  }
  const std::string html = to_html(report, Language::kEnglish);
  EXPECT_NE(html.find("data-first=\"10\""), std::string::npos) << "the script folds it";
  EXPECT_NE(html.find(">reduce_kernel<span class=\"full\""), std::string::npos);
  EXPECT_NE(html.find("void at::native::reduce_kernel&lt;39"), std::string::npos);
  EXPECT_NE(html.find("shorter than its own start"), std::string::npos);
}

TEST(Html, LanesAreNamedInTheLanguageOfThePage) {
  Report report = report_from("input_bound.textproto");
  TypicalStep* timeline = report.add_timelines();
  timeline->set_which("typical");
  for (const auto& [name, group] : {std::pair{"waits for", "cause"},
                                    {"main thread", "host"},
                                    {"thread 7", "host"},
                                    {"worker 3", "worker"}}) {
    Lane* lane = timeline->add_lane();
    lane->set_name(name);
    lane->set_group(group);
  }
  const std::string chinese = to_html(report, Language::kChinese);
  for (const char* name : {"为何空闲", "主线程", "线程 7", "加载进程 3"}) {
    EXPECT_NE(chinese.find(std::string("\"name\":\"") + name), std::string::npos) << name;
  }
  EXPECT_NE(to_html(report, Language::kEnglish).find("\"name\":\"why idle\""), std::string::npos);
}

TEST(Html, EveryRestIsShown) {
  Report report = report_from("input_bound.textproto");
  report.mutable_loader()->set_seen(true);
  SpeedCurvePoint* point = report.add_worker_curve();
  point->set_num_workers(4);
  point->set_step_ns(150'000'000);
  point->set_now(true);
  RankSummary* rank = report.add_ranks();
  rank->set_rank(0);
  report.add_ranks()->set_rank(1);
  const std::string html = to_html(report, Language::kEnglish);
  EXPECT_NE(html.find("Step time against num_workers"), std::string::npos);
  EXPECT_NE(html.find("4 (now)"), std::string::npos);
  EXPECT_NE(html.find(">Ranks<"), std::string::npos);
}

TEST(Markup, EscapesAndCloses) {
  Markup markup;
  markup.open("p", {{"title", "a\"<b>"}}).text("1 < 2 & 3").open("b").text("x");
  EXPECT_EQ(markup.take(), "<p title=\"a&quot;&lt;b&gt;\">1 &lt; 2 &amp; 3<b>x</b></p>\n");
  EXPECT_EQ(escape_json("</s\"\\\n\xe2\x80\xa8"), "\\u003c/s\\\"\\\\\\u000a\\u2028");
}

}  // namespace
}  // namespace idlescope::report
