// Sentences of the message catalogue as report.proto Text, and their rendering in a language.
//
// In: a catalogue message with formatted values. Out: Text{id, values, English text}; for
// another language the renderers look the id up in that catalogue and translate the units
// of the values. A value that is itself a sentence is given by its message (`nested`); the
// Text then carries its id as "NAME.id", so that it can be translated too.
#pragma once

#include <string>
#include <string_view>

#include "proto/fill.h"
#include "proto/message.h"
#include "proto/report.pb.h"

namespace idlescope::report {

enum class Language { kEnglish, kChinese };

// "zh", "zh_CN.UTF-8" -> Chinese; anything else English.
Language language_of(std::string_view locale_name);

class Say {
 public:
  explicit Say(const messages::Message& message) : message_(message) {}
  Say& with(std::string_view name, std::string value);
  Say& nested(std::string_view name, const messages::Message& message);
  // A count and its noun: "1 step", "{steps} steps"; the value is {NAME}.
  Say& counted(std::string_view name, std::string_view noun, uint64_t number,
               const messages::Message& one, const messages::Message& many);
  operator Text() const;  // NOLINT(google-explicit-constructor): reads as the sentence it is

 private:
  messages::Message message_;
  Text text_;
};

std::string render(const Text& text, Language language);
std::string render(const messages::Message& message, Language language);
// A formatted value in a language: "212 ms" in Chinese with 毫秒.
std::string localized(const std::string& value, Language language);

// Catalogue lines that belong to an enum value; "leaf-data-cpu", "row-data", "verdict-data".
const messages::Message& leaf_words(Leaf leaf);
const messages::Message& row_words(Verdict verdict);    // one short word, for bars
const messages::Message& cause_words(Verdict verdict);  // in a sentence: "host code"
const messages::Message& verdict_words(Verdict verdict);
const messages::Message& limiter_words(Limiter limiter);
const messages::Message& certainty_words(Certainty certainty);

// analysis.md A6: which verdict a leaf counts for. BUSY_COMPUTE and BUSY_MEM: COMPUTE;
// UNKNOWN_*, PROFILER and NOTEBOOK_IDLE: CANNOT_TELL.
Verdict verdict_of(Leaf leaf);

}  // namespace idlescope::report
