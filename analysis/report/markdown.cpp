#include "analysis/report/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analysis/report/fix_words.h"
#include "analysis/report/layout.h"
#include "analysis/report/numbers.h"
#include "analysis/report/step_rows.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// Text in backticks: a longer fence than any run of backticks inside.
std::string code(const std::string& text) {
  size_t longest = 0;
  size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string pad = longest > 0 ? " " : "";
  return fence + pad + printable(text) + pad + fence;
}

class Writer {
 public:
  Writer(const Report& report, Language language) : report_(report), language_(language) {}

  std::string words(const Text& text) const { return escape_markdown(render(text, language_)); }
  std::string words(const messages::Message& message) const { return render(message, language_); }

  void verdict() {
    if (report_.sentences().empty()) return;
    out_ += fmt::format("**{}** ({})\n\n", words(report_.sentences(0)),
                        words(certainty_words(report_.certainty())));
    std::string lead;
    for (int i = 1; i < report_.sentences_size(); ++i) {
      if (!lead.empty() && language_ == Language::kEnglish) lead += ' ';
      lead += words(report_.sentences(i));
    }
    if (!lead.empty()) out_ += lead + "\n\n";
  }

  void step() {
    const StepRows rows = step_rows(report_);
    if (rows.rows.empty()) return;
    const TimeScale scale(rows.total_ns);
    out_ += fmt::format("| {} | {} | |\n| --- | ---: | --- |\n",
                        words(rows.window ? messages::kLabelWindow : messages::kLabelStep),
                        scale.with_unit(rows.total_ns));
    for (const StepRow& row : rows.rows) {
      const double share = static_cast<double>(row.ns) / static_cast<double>(rows.total_ns);
      out_ += fmt::format(
          "| {} | {} | {} |\n",
          words(row.verdict == VERDICT_UNSPECIFIED ? messages::kRowOther : row_words(row.verdict)),
          scale.with_unit(row.ns), percent(share));
    }
    out_ += '\n';
  }

  void fixes() {
    if (report_.fixes().empty() && report_.fix_notes().empty()) return;
    heading(messages::kLabelFixes);
    for (int i = 0; i < report_.fixes_size(); ++i) {
      const Fix& fix = report_.fixes(i);
      out_ += fmt::format("{}. {}", i + 1, words(fix.text()));
      if (!fix.site().empty()) out_ += " (" + code(fix.site()) + ")";
      if (!fix.code().empty()) out_ += ": " + code(fix.code());
      std::string gain;
      for (const Text& sentence : gain_sentences(report_, i)) gain += words(sentence);
      out_ += gain.empty() ? "\n" : "  \n   " + gain + "\n";
    }
    for (const Text& note : report_.fix_notes()) out_ += words(note) + "\n";
    out_ += '\n';
  }

  void rest() {
    if (report_.has_check()) {
      heading(messages::kLabelCheck);
      out_ += words(report_.check()) + "\n\n";
    }
    if (!report_.not_it().empty()) {
      heading(messages::kLabelNotIt);
      for (const NotIt& not_it : report_.not_it()) out_ += "- " + words(not_it.text()) + "\n";
      out_ += '\n';
    }
    heading(messages::kLabelLimits);
    for (const Text& limit : report_.limits()) out_ += "- " + words(limit) + "\n";
  }

  std::string take() { return std::move(out_); }

 private:
  void heading(const messages::Message& message) { out_ += "**" + words(message) + "**\n\n"; }

  const Report& report_;
  Language language_;
  std::string out_;
};

}  // namespace

std::string escape_markdown(std::string_view text) {
  const std::string plain = printable(text);
  const auto word = [&](size_t i) {
    return i < plain.size() && std::isalnum(static_cast<unsigned char>(plain[i])) != 0;
  };
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    switch (c) {
      case '<':  // '>' alone opens nothing inside a line
        out += "&lt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '_':  // inside a word it is no markup: num_workers
        if (!(i > 0 && word(i - 1) && word(i + 1))) out += '\\';
        out += c;
        break;
      case '\\':
      case '`':
      case '*':
      case '[':
      case ']':
      case '|':
      case '#':
      case '~':
        out += '\\';
        out += c;
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string to_markdown(const Report& report, Language language) {
  Writer writer(report, language);
  writer.verdict();
  writer.step();
  writer.fixes();
  writer.rest();
  return writer.take();
}

}  // namespace idlescope::report
