#include "analysis/report/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/fix_words.h"
#include "analysis/report/layout.h"
#include "analysis/report/numbers.h"
#include "analysis/report/step_rows.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

constexpr size_t kMargin = 9;  // "VERDICT  "

// ANSI select-graphic-rendition codes; chosen from the 16 colours so that light and dark
// terminals both keep contrast.
constexpr const char* kBold = "1";
constexpr const char* kBlue = "34";
constexpr const char* kYellow = "33";

class Sheet {
 public:
  explicit Sheet(const TextOptions& options) : options_(options) {}

  size_t body_width() const { return options_.width - kMargin; }
  const TextOptions& options() const { return options_; }

  std::string words(const Text& text) const { return printable(render(text, options_.language)); }
  std::string words(const messages::Message& message) const {
    return render(message, options_.language);
  }
  std::string paint(const std::string& text, const char* code) const {
    if (!options_.colour || text.empty()) return text;
    return fmt::format("\033[{}m{}\033[0m", code, text);
  }

  // The first line after this carries the label in the margin.
  void begin(const messages::Message& label) { label_ = words(label); }
  void line(const std::string& text) {
    std::string margin = pad_right(label_, kMargin);
    if (!label_.empty()) margin = paint(label_, kBold) + margin.substr(label_.size());
    label_.clear();
    std::string one_line = text;  // a name may hold a line end
    std::replace(one_line.begin(), one_line.end(), '\n', ' ');
    out_ += text.empty() ? margin.substr(0, margin.find_last_not_of(' ') + 1) : margin + one_line;
    out_ += '\n';
  }
  // `hang`: columns that all lines but the first are moved in.
  void paragraph(const std::string& text, size_t hang = 0) {
    const std::vector<std::string> lines = wrap(text, body_width() - hang);
    for (size_t i = 0; i < lines.size(); ++i) line((i ? std::string(hang, ' ') : "") + lines[i]);
  }
  std::string take() { return std::move(out_); }

 private:
  TextOptions options_;
  std::string label_;
  std::string out_;
};

void verdict_block(const Report& report, Sheet* sheet) {
  sheet->begin(messages::kLabelVerdict);
  const std::string certainty = sheet->words(certainty_words(report.certainty()));
  if (report.sentences().empty()) {
    sheet->line(certainty);
    return;
  }
  const size_t room = sheet->body_width() - columns(certainty) - 2;
  const std::vector<std::string> first = wrap(sheet->words(report.sentences(0)), room);
  for (size_t i = 0; i < first.size(); ++i) {
    if (i > 0) {
      sheet->line(sheet->paint(first[i], kBold));
      continue;
    }
    // "Cannot tell yet." needs no second "cannot tell".
    const std::string gap(sheet->body_width() - columns(first[0]) - columns(certainty), ' ');
    sheet->line(report.verdict() == CANNOT_TELL ? sheet->paint(first[0], kBold)
                                                : sheet->paint(first[0], kBold) + gap + certainty);
  }
  std::string paragraph;
  for (int i = 1; i < report.sentences_size(); ++i) {
    const Text& sentence = report.sentences(i);
    if (sentence.id() == messages::kNvmlUtilization.id && !paragraph.empty()) {
      sheet->paragraph(paragraph);
      paragraph.clear();
    }
    if (!paragraph.empty() && sheet->options().language == Language::kEnglish) paragraph += ' ';
    paragraph += sheet->words(sentence);
  }
  if (!paragraph.empty()) sheet->paragraph(paragraph);
}

void step_block(const Report& report, Sheet* sheet) {
  const StepRows rows = step_rows(report);
  if (rows.rows.empty()) return;
  sheet->begin(rows.window ? messages::kLabelWindow : messages::kLabelStep);
  const TimeScale scale(rows.total_ns);
  size_t label_width = 0;
  for (const StepRow& row : rows.rows) {
    const auto& label =
        row.verdict == VERDICT_UNSPECIFIED ? messages::kRowOther : row_words(row.verdict);
    label_width = std::max(label_width, columns(sheet->words(label)));
  }
  label_width = std::max<size_t>(label_width, 8) + 1;
  const size_t value_width = 9;
  const size_t bar_width =
      std::min<size_t>(30, (sheet->body_width() - label_width - value_width) * 3 / 5);
  int64_t longest = 1;
  for (const StepRow& row : rows.rows) longest = std::max(longest, row.ns);
  // A whole step is 40 columns where the longest row allows it.
  const double per_ns =
      std::min(1.25 * static_cast<double>(bar_width) / static_cast<double>(rows.total_ns),
               static_cast<double>(bar_width) / static_cast<double>(longest));
  for (const StepRow& row : rows.rows) {
    const bool other = row.verdict == VERDICT_UNSPECIFIED;
    std::string text =
        pad_right(sheet->words(other ? messages::kRowOther : row_words(row.verdict)), label_width);
    const std::string drawn = bar(static_cast<double>(row.ns) * per_ns, sheet->options().utf8);
    const char* colour = row.verdict == COMPUTE ? kBlue : kYellow;
    text += sheet->paint(drawn, colour) +
            std::string(bar_width - std::min(bar_width, columns(drawn)), ' ');
    text += pad_left(scale.with_unit(row.ns), value_width);
    std::string details;
    const size_t used = label_width + bar_width + value_width + 3;
    for (size_t i = 0; i < row.parts.size() && i < 2 && row.verdict != COMPUTE; ++i) {
      if (scale.number(row.parts[i].second) == "0") break;
      std::string detail = sheet->words(leaf_words(row.parts[i].first));
      if (row.parts.size() > 1) detail += " " + scale.number(row.parts[i].second);
      detail = details.empty() ? detail : details + ", " + detail;
      if (used + columns(detail) > sheet->body_width()) break;
      details = detail;
    }
    if (!details.empty()) text += "   " + details;
    sheet->line(text);
  }
}

std::string site_words(const Fix& fix, const Sheet& sheet) {
  return fix.site().empty() ? sheet.words(messages::kSiteUnknown) : printable(fix.site());
}

void one_fix(const Report& report, int index, Sheet* sheet) {
  const Fix& fix = report.fixes(index);
  const std::string number = pad_right(std::to_string(index + 1), 3);
  const std::string what = sheet->words(fix.text());
  const std::string code = printable(fix.code());
  const std::string site = fix.site().empty() ? "" : site_words(fix, *sheet);
  std::string one_line = pad_right(what, 22);
  if (!site.empty()) one_line += "  " + pad_right(site, code.empty() ? 0 : 12);
  if (!code.empty()) one_line += "  " + code;
  if (columns(one_line) + 3 <= sheet->body_width()) {
    one_line.erase(one_line.find_last_not_of(' ') + 1);
    sheet->line(number + one_line);
  } else {
    std::string lead = number;  // of the first line only
    for (const std::string& line : wrap(what, sheet->body_width() - 3)) {
      sheet->line(lead + line);
      lead = "   ";
    }
    std::string rest = site + (site.empty() || code.empty() ? "" : "   ") + code;
    if (columns(rest) + 3 <= sheet->body_width()) {
      if (!rest.empty()) sheet->line("   " + rest);
    } else {
      for (const std::string& line : wrap(rest, sheet->body_width() - 3)) sheet->line("   " + line);
    }
  }
  std::string gain;
  for (const Text& sentence : gain_sentences(report, index)) gain += sheet->words(sentence);
  if (!gain.empty()) {
    for (const std::string& line : wrap(gain, sheet->body_width() - 3)) sheet->line("   " + line);
  }
}

void fixes_block(const Report& report, Sheet* sheet) {
  if (report.fixes().empty() && report.fix_notes().empty()) return;
  sheet->begin(messages::kLabelFixes);
  const int shown =
      sheet->options().verbose ? report.fixes_size() : std::min(3, report.fixes_size());
  for (int i = 0; i < shown; ++i) one_fix(report, i, sheet);
  std::string notes;
  for (const Text& note : report.fix_notes()) {
    if (!notes.empty() && sheet->options().language == Language::kEnglish) notes += ' ';
    notes += sheet->words(note);
  }
  if (!notes.empty()) sheet->paragraph(notes);
}

void details_block(const Report& report, Sheet* sheet) {
  sheet->begin(messages::kLabelDetails);
  sheet->paragraph(fmt::format("verdict {}, top leaf {}, limiter {}",
                               Verdict_Name(report.verdict()), Leaf_Name(report.top_leaf()),
                               Limiter_Name(report.limiter())));
  for (const LeafTime& leaf : report.leaves()) {
    const double total = static_cast<double>(std::max<int64_t>(leaf.total_ns(), 1));
    const int64_t ns = report.step().window_only() ? leaf.total_ns() : leaf.per_step_ns();
    sheet->line(fmt::format("{:<18} {:>6} {:>9}  A/B/C {:.0f}/{:.0f}/{:.0f}",
                            Leaf_Name(leaf.leaf()), percent(leaf.share()), duration(ns),
                            100.0 * static_cast<double>(leaf.grade_a_ns()) / total,
                            100.0 * static_cast<double>(leaf.grade_b_ns()) / total,
                            100.0 * static_cast<double>(leaf.grade_c_ns()) / total));
  }
  for (const Gap& gap : report.gaps()) sheet->paragraph(sheet->words(gap.text()), 2);
  for (const Abstention& abstention : report.abstentions()) {
    sheet->paragraph(sheet->words(abstention.text()), 2);
  }
  for (const Anomaly& anomaly : report.anomalies()) {
    sheet->paragraph(
        fmt::format("[{}] {} ({}x)", anomaly.id(), sheet->words(anomaly.text()), anomaly.count()),
        2);
  }
  for (const ProcessInfo& process : report.source().processes()) {
    sheet->paragraph(printable(fmt::format("{} pid {} {}: {} GPU operations, {} host events",
                                           process.role(), process.pid(), process.executable(),
                                           process.gpu_ops(), process.host_events())),
                     2);
  }
}

}  // namespace

std::string render_text(const Report& report, const TextOptions& options) {
  Sheet sheet(options);
  verdict_block(report, &sheet);
  step_block(report, &sheet);
  fixes_block(report, &sheet);
  if (report.has_check()) {
    sheet.begin(messages::kLabelCheck);
    sheet.paragraph(sheet.words(report.check()));
  }
  sheet.begin(messages::kLabelNotIt);
  for (const NotIt& not_it : report.not_it()) sheet.paragraph(sheet.words(not_it.text()), 2);
  sheet.begin(messages::kLabelLimits);
  for (const Text& limit : report.limits()) sheet.paragraph(sheet.words(limit), 2);
  if (options.verbose) details_block(report, &sheet);
  return sheet.take();
}

}  // namespace idlescope::report
