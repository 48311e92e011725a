#include "analysis/report/words.h"

#include <array>

#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

constexpr messages::Message kChinese[] = {
#define IDLESCOPE_MESSAGE(symbol, id, text) {id, text},
#include "proto/messages_zh.def"
#undef IDLESCOPE_MESSAGE
};

const messages::Message* find_chinese(std::string_view id) {
  for (const messages::Message& message : kChinese) {
    if (message.id == id) return &message;
  }
  return nullptr;
}

// "DATA_CPU" -> "leaf-data-cpu".
std::string kebab(std::string_view prefix, std::string_view enum_name) {
  std::string id(prefix);
  for (const char letter : enum_name) {
    id += letter == '_' ? '-'
                        : static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
  }
  return id;
}

const messages::Message& lookup(const std::string& id) {
  const messages::Message* message = messages::find(id);
  return message ? *message : messages::kWordUnknown;
}

// Units are the last word of a value ("212 ms", "9.6 MB" stays).
std::string chinese_units(const std::string& value) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kUnits = {{
      {" ns", " 纳秒"},
      {" us", " 微秒"},
      {" ms", " 毫秒"},
      {" s", " 秒"},
      {" min", " 分钟"},
      {" h", " 小时"},
  }};
  if (value.empty() || value[0] < '0' || value[0] > '9') return value;
  for (const auto& [unit, translated] : kUnits) {
    if (value.size() > unit.size() &&
        value.compare(value.size() - unit.size(), unit.size(), unit) == 0) {
      return value.substr(0, value.size() - unit.size()) + std::string(translated);
    }
  }
  // "38 %" is set without the space.
  if (value.size() > 2 && value.compare(value.size() - 2, 2, " %") == 0) {
    return value.substr(0, value.size() - 2) + "%";
  }
  return value;
}

// "212 毫秒 里": a translated unit needs no space before the next Chinese character.
std::string without_inner_spaces(const std::string& text) {
  const auto wide = [&](size_t i) {
    return i < text.size() && static_cast<unsigned char>(text[i]) >= 0xE0;
  };
  const auto tail = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' && i > 0 && tail(i - 1) && wide(i + 1)) continue;
    out += text[i];
  }
  return out;
}

}  // namespace

Language language_of(std::string_view locale_name) {
  return locale_name.substr(0, 2) == "zh" ? Language::kChinese : Language::kEnglish;
}

Say& Say::with(std::string_view name, std::string value) {
  (*text_.mutable_values())[std::string(name)] = std::move(value);
  return *this;
}

Say& Say::nested(std::string_view name, const messages::Message& message) {
  (*text_.mutable_values())[std::string(name) + ".id"] = std::string(message.id);
  return *this;
}

Say& Say::counted(std::string_view name, std::string_view noun, uint64_t number,
                  const messages::Message& one, const messages::Message& many) {
  return with(name, count(number)).nested(noun, number == 1 ? one : many);
}

Say::operator Text() const {
  Text text = text_;
  messages::Values plain;
  for (const auto& [name, value] : text_.values()) {
    if (name.size() < 3 || name.compare(name.size() - 3, 3, ".id") != 0)
      plain.emplace_back(name, value);
  }
  for (const auto& [name, value] : text_.values()) {
    if (name.size() > 3 && name.compare(name.size() - 3, 3, ".id") == 0) {
      const std::string key = name.substr(0, name.size() - 3);
      const std::string words = messages::fill(lookup(value).text, plain);
      (*text.mutable_values())[key] = words;
    }
  }
  messages::Values all;
  for (const auto& [name, value] : text.values()) all.emplace_back(name, value);
  text.set_id(std::string(message_.id));
  text.set_text(messages::fill(message_.text, all));
  return text;
}

std::string render(const Text& text, Language language) {
  if (language == Language::kEnglish) return text.text();
  const messages::Message* message = find_chinese(text.id());
  if (!message) return text.text();
  messages::Values values;
  for (const auto& [name, value] : text.values()) values.emplace_back(name, chinese_units(value));
  for (auto& [name, value] : values) {
    const auto nested = text.values().find(name + ".id");
    if (nested == text.values().end()) continue;
    if (const messages::Message* words = find_chinese(nested->second)) {
      value = messages::fill(words->text, values);
    }
  }
  return without_inner_spaces(messages::fill(message->text, values));
}

std::string render(const messages::Message& message, Language language) {
  if (language == Language::kChinese) {
    if (const messages::Message* translated = find_chinese(message.id)) {
      return std::string(translated->text);
    }
  }
  return std::string(message.text);
}

std::string localized(const std::string& value, Language language) {
  return language == Language::kChinese ? chinese_units(value) : value;
}

const messages::Message& leaf_words(Leaf leaf) { return lookup(kebab("leaf-", Leaf_Name(leaf))); }
const messages::Message& row_words(Verdict verdict) {
  return lookup(kebab("row-", Verdict_Name(verdict)));
}
const messages::Message& cause_words(Verdict verdict) {
  return lookup(kebab("cause-", Verdict_Name(verdict)));
}
const messages::Message& verdict_words(Verdict verdict) {
  return lookup(kebab("verdict-", Verdict_Name(verdict)));
}
const messages::Message& limiter_words(Limiter limiter) {
  return lookup(kebab("word-", Limiter_Name(limiter)));
}
const messages::Message& certainty_words(Certainty certainty) {
  switch (certainty) {
    case SURE:
      return messages::kSure;
    case LIKELY:
      return messages::kLikely;
    default:
      return messages::kCannotTell;
  }
}

Verdict verdict_of(Leaf leaf) {
  switch (leaf) {
    case BUSY_COMPUTE:
    case BUSY_MEM:
      return COMPUTE;
    case BUSY_COPY_EXPOSED:
    case XFER_PAGEABLE:
    case XFER_SYNC:
    case XFER_SMALL:
    case XFER_SLOW:
    case XFER_OTHER:
      return TRANSFER;
    case BUSY_COMM_EXPOSED:
    case COMM_TRANSFER:
    case COMM_STRAGGLER:
    case COMM_HOST:
    case COMM_UNVERIFIED:
      return COMM;
    case STARTUP_LEAF:
      return STARTUP;
    case COMPILE_MODULE:
    case COMPILE_JIT:
    case COMPILE_AUTOTUNE:
    case COMPILE_CAPTURE:
      return COMPILE;
    case ALLOC_DEVICE:
    case ALLOC_PINNED:
    case ALLOC_LOCK:
      return ALLOC;
    case CKPT:
      return PERIODIC;
    case DATA_STARTUP:
    case DATA_STORAGE:
    case DATA_REMOTE:
    case DATA_CPU:
    case DATA_CONTENDED:
    case DATA_COLLATE:
    case DATA_IPC:
    case DATA_PIN:
    case DATA_WAKE:
    case DATA_FETCH:
    case DATA_QUEUED:
    case DATA_UNSEEN:
      return DATA;
    case SYNC_SCALAR:
    case SYNC_EXPLICIT:
    case SYNC_EVENT:
    case SYNC_IMPLICIT:
      return SYNC;
    case LAUNCH_LEAF:
    case DISPATCH:
      return LAUNCH;
    case HOST_OPTIMIZER:
    case HOST_BACKWARD:
    case HOST_FORWARD:
    case HOST_LOGGING:
    case HOST_GC:
    case HOST_PYTHON:
    case HOST_BLOCKED:
    case HOST_EVALUATION:
      return HOST;
    default:
      return CANNOT_TELL;
  }
}

}  // namespace idlescope::report
