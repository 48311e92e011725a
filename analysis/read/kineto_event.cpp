#include "analysis/read/kineto_event.h"

#include <algorithm>
#include <cstring>

#include <simdjson.h>

#include "analysis/read/json_splitter.h"

namespace idlescope::read {
namespace {

namespace ondemand = simdjson::ondemand;
static_assert(JsonSplitter::kPadding >= simdjson::SIMDJSON_PADDING);

// The key as it stands in the text; none of ours needs unescaping.
std::string_view text_of(ondemand::raw_json_string key) {
  const char* begin = key.raw();
  const char* end = begin;
  while (*end != '"') end += *end == '\\' ? 2 : 1;
  return {begin, static_cast<size_t>(end - begin)};
}

std::string_view token_of(ondemand::value value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' ||
                            token.back() == '\t' || token.back() == ',')) {
    token.remove_suffix(1);
  }
  return token;
}

// A number, or a string that spells one.
std::string_view number_text_of(ondemand::value value) {
  const std::string_view token = token_of(value);
  const bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return quoted ? token.substr(1, token.size() - 2) : token;
}

bool is_string(std::string_view token) { return !token.empty() && token.front() == '"'; }

// Unescaped; empty if it is not a string.
bool string_of(ondemand::value& value, std::string_view& out) {
  if (!is_string(token_of(value))) return true;
  return value.get_string().get(out) == simdjson::SUCCESS;
}

bool id_of(ondemand::value& value, KinetoId& id) {
  const std::string_view token = token_of(value);
  id = {};
  if (const std::optional<int64_t> number = integer_of(token)) {
    id.kind = KinetoId::kNumber;
    id.number = *number;
    return true;
  }
  if (!is_string(token)) return true;
  id.kind = KinetoId::kText;
  return value.get_string().get(id.text) == simdjson::SUCCESS;
}

bool triple_of(ondemand::value& value, uint32_t (&out)[3]) {
  if (token_of(value) != "[") return true;
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return false;
  size_t at = 0;
  for (auto element : array) {
    ondemand::value number;
    if (element.get(number) != simdjson::SUCCESS) return false;
    const std::optional<int64_t> parsed = integer_of(token_of(number));
    if (at < 3 && parsed && *parsed >= 0 && *parsed <= UINT32_MAX) {
      out[at] = static_cast<uint32_t>(*parsed);
    }
    ++at;
  }
  return true;
}

enum class Arg {
  kSkip,
  kDevice,
  kContext,
  kStream,
  kCorrelation,
  kBytes,
  kRegisters,
  kShared,
  kGraphId,
  kGraphNode,
  kWaitRecord,
  kGrid,
  kBlock,
  kName,
  kCollective,
  kGroup,
  kGroupRanks,
  kDtype,
  kGroupSize,
  kElementsIn,
  kElementsOut,
};

struct ArgName {
  std::string_view text;
  Arg arg;
};

constexpr ArgName kArgs[] = {
    {"device", Arg::kDevice},
    {"context", Arg::kContext},
    {"stream", Arg::kStream},
    {"correlation", Arg::kCorrelation},
    {"bytes", Arg::kBytes},
    {"size", Arg::kBytes},  // ROCm runtime rows
    {"registers per thread", Arg::kRegisters},
    {"shared memory", Arg::kShared},
    {"graph id", Arg::kGraphId},
    {"graph node id", Arg::kGraphNode},
    {"wait_on_cuda_event_record_corr_id", Arg::kWaitRecord},
    {"grid", Arg::kGrid},
    {"block", Arg::kBlock},
    {"name", Arg::kName},
    {"Collective name", Arg::kCollective},
    {"Process Group Name", Arg::kGroup},
    {"Process Group Ranks", Arg::kGroupRanks},
    {"dtype", Arg::kDtype},
    {"Group size", Arg::kGroupSize},
    {"In msg nelems", Arg::kElementsIn},
    {"Out msg nelems", Arg::kElementsOut},
};

Arg find_arg(std::string_view key) {
  for (const ArgName& name : kArgs) {
    if (name.text.size() == key.size() && name.text == key) return name.arg;
  }
  return Arg::kSkip;
}

bool parse_arg(Arg arg, ondemand::value& value, KinetoEvent& event) {
  const auto number = [&value] { return integer_of(token_of(value)); };
  switch (arg) {
    case Arg::kSkip:
      return true;
    case Arg::kDevice:
      event.device = number();
      return true;
    case Arg::kContext:
      event.context = number();
      return true;
    case Arg::kStream:
      event.stream = number();
      return true;
    case Arg::kCorrelation:
      event.correlation = number();
      return true;
    case Arg::kBytes:
      event.bytes = number();
      return true;
    case Arg::kRegisters:
      event.registers = number();
      return true;
    case Arg::kShared:
      event.shared_bytes = number();
      return true;
    case Arg::kGraphId:
      event.graph_id = number();
      return true;
    case Arg::kGraphNode:
      event.graph_node_id = number();
      return true;
    case Arg::kWaitRecord:
      event.wait_record_correlation = number();
      return true;
    case Arg::kGroupSize:
      event.group_size = number();
      return true;
    case Arg::kElementsIn:
    case Arg::kElementsOut: {
      const std::optional<int64_t> elements = number();
      if (elements) event.elements = std::max(event.elements.value_or(0), *elements);
      return true;
    }
    case Arg::kGrid:
      return triple_of(value, event.grid);
    case Arg::kBlock:
      return triple_of(value, event.block);
    case Arg::kName:
      return string_of(value, event.args_name);
    case Arg::kCollective:
      return string_of(value, event.collective);
    case Arg::kGroup:
      return string_of(value, event.process_group);
    case Arg::kGroupRanks:
      return string_of(value, event.group_ranks);
    case Arg::kDtype:
      return string_of(value, event.dtype);
  }
  return true;
}

// Rows whose arguments tell us nothing, two thirds of most files.
bool args_matter(const KinetoEvent& event) {
  const std::string_view category = event.category;
  return category != "cpu_op" && category != "python_function" && category != "Operator" &&
         category != "user_annotation" && category != "cpu_instant_event";
}

bool parse_args(ondemand::value& value, KinetoEvent& event) {
  if (token_of(value) != "{") return true;
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return false;
  for (auto item : object) {
    ondemand::field field;
    if (std::move(item).get(field) != simdjson::SUCCESS) return false;
    const Arg arg = find_arg(text_of(field.key()));
    if (arg == Arg::kSkip) continue;
    ondemand::value inner = field.value();
    if (!parse_arg(arg, inner, event)) return false;
  }
  return true;
}

enum Seen : uint32_t {
  kSeenPh = 1,
  kSeenCat = 2,
  kSeenName = 4,
  kSeenPid = 8,
  kSeenTid = 16,
  kSeenTs = 32,
  kSeenDur = 64,
  kSeenArgs = 128,
};

}  // namespace

std::optional<int64_t> integer_of(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
    token = token.substr(1, token.size() - 2);
  }
  const bool negative = !token.empty() && token.front() == '-';
  if (negative) token.remove_prefix(1);
  // Whole numbers that a writer spelled as "7.0".
  if (const size_t point = token.find('.'); point != token.npos) {
    if (token.substr(point + 1).find_first_not_of('0') != token.npos) return std::nullopt;
    token = token.substr(0, point);
  }
  if (token.empty() || token.size() > 20) return std::nullopt;
  uint64_t value = 0;
  for (const char c : token) {
    if (c < '0' || c > '9') return std::nullopt;
    const uint64_t digit = static_cast<uint64_t>(c - '0');
    if (value > (UINT64_MAX - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return static_cast<int64_t>(negative ? 0 - value : value);
}

struct KinetoEventParser::Simd {
  ondemand::parser parser;
};

KinetoEventParser::KinetoEventParser() : simd_(std::make_unique<Simd>()) {}
KinetoEventParser::~KinetoEventParser() = default;

const KinetoEvent& KinetoEventParser::parse(std::string_view text) {
  event_ = {};
  ondemand::document document;
  ondemand::object object;
  const simdjson::padded_string_view padded(text.data(), text.size(),
                                            text.size() + simdjson::SIMDJSON_PADDING);
  if (simd_->parser.iterate(padded).get(document) != simdjson::SUCCESS) return event_;
  if (document.get_object().get(object) != simdjson::SUCCESS) return event_;
  uint32_t seen = 0;
  const auto once = [this, &seen](uint32_t bit) {
    if ((seen & bit) != 0) event_.repeated_key = true;
    seen |= bit;
  };
  for (auto item : object) {
    ondemand::field field;
    if (std::move(item).get(field) != simdjson::SUCCESS) return event_;
    const std::string_view key = text_of(field.key());
    ondemand::value value = field.value();
    bool good = true;
    if (key == "ph") {
      once(kSeenPh);
      std::string_view phase;
      good = string_of(value, phase);
      event_.phase = phase.empty() ? '\0' : phase.front();
    } else if (key == "cat") {
      once(kSeenCat);
      good = string_of(value, event_.category);
    } else if (key == "name") {
      once(kSeenName);
      good = string_of(value, event_.name);
    } else if (key == "pid") {
      once(kSeenPid);
      good = id_of(value, event_.pid);
    } else if (key == "tid") {
      once(kSeenTid);
      good = id_of(value, event_.tid);
    } else if (key == "ts") {
      once(kSeenTs);
      event_.ts = number_text_of(value);
    } else if (key == "dur") {
      once(kSeenDur);
      event_.dur = number_text_of(value);
    } else if (key == "args") {
      once(kSeenArgs);
      if (args_matter(event_)) good = parse_args(value, event_);
    }
    if (!good) return event_;
  }
  // Whole rows are what is written without a phase, too.
  if (event_.phase == 0 && !event_.dur.empty()) event_.phase = 'X';
  event_.ok = true;
  return event_;
}

const KinetoEvent& KinetoEventParser::parse_whole(std::string_view object,
                                                  std::string_view end_ts) {
  parse(object.substr(0, object.size() - JsonSplitter::kPadding));
  event_.phase = 'X';
  event_.end_ts = end_ts;
  return event_;
}

}  // namespace idlescope::read
