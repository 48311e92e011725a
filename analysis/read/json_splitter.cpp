#include "analysis/read/json_splitter.h"

#include <array>
#include <cstring>

namespace idlescope::read {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kMaxKeyBytes = 4096;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Bytes at which the scan of a value must stop and think, outside strings.
constexpr std::array<bool, 256> kStructural = [] {
  std::array<bool, 256> table{};
  for (const char c : {'"', '{', '}', '[', ']'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

}  // namespace

bool JsonSplitter::refill(TextStream& text) {
  const size_t keep_from = in_item_ && !discard_ ? item_ : at_;
  if (keep_from > 0) {
    std::memmove(buffer_.data(), buffer_.data() + keep_from, end_ - keep_from);
    base_ += keep_from;
    end_ -= keep_from;
    at_ -= keep_from;
    item_ = in_item_ && !discard_ ? 0 : at_;
  }
  if (buffer_.size() < end_ + kChunkBytes + kPadding) {
    buffer_.resize(end_ + kChunkBytes + kPadding);
  }
  const size_t got = text.read(buffer_.data() + end_, kChunkBytes);
  end_ += got;
  std::memset(buffer_.data() + end_, 0, kPadding);
  text_ended_ = got == 0;
  return got > 0;
}

JsonSplitter::Result JsonSplitter::split(TextStream& text, Sink& sink) {
  *this = JsonSplitter();
  while (true) {
    const Step next = step(sink);
    if (next == Step::kStop) break;
    if (next == Step::kAgain) continue;
    if (in_item_ && !discard_ && at_ - item_ > kMaxItemBytes) {
      discard_ = true;
      ++result_.oversized;
    }
    if (!refill(text)) break;
  }
  result_.complete = state_ == State::kDone;
  result_.trailing = result_.complete && find_trailing(text);
  result_.end_offset = base_ + (result_.trailing ? at_ : end_);
  buffer_ = {};
  return result_;
}

bool JsonSplitter::find_trailing(TextStream& text) {
  do {
    // Some writers pad with NULs to a block.
    while (at_ < end_ && (is_space(buffer_[at_]) || buffer_[at_] == '\0')) ++at_;
    if (at_ < end_) return true;
  } while (refill(text));
  return false;
}

void JsonSplitter::skip_space() {
  while (at_ < end_ && is_space(buffer_[at_])) ++at_;
}

void JsonSplitter::begin_item() {
  item_ = at_;
  in_item_ = true;
  discard_ = false;
  depth_ = 0;
  in_string_ = escaped_ = broken_ = false;
}

bool JsonSplitter::scan_value() {
  const char* data = buffer_.data();
  size_t at = at_;
  const size_t end = end_;
  while (at < end) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
        ++at;
        continue;
      }
      while (at < end && data[at] != '"' && data[at] != '\\' && data[at] != '\n') ++at;
      if (at == end) break;
      const char c = data[at++];
      if (c == '\\') {
        escaped_ = true;
      } else {
        in_string_ = false;
        // JSON strings hold no raw line ends: this one lost its closing quote.
        if (c == '\n') broken_ = true;
      }
      continue;
    }
    if (broken_) {
      // Wait for a line that opens an object: the next event.
      const void* line = std::memchr(data + at, '\n', end - at);
      if (data[at] == '{' &&
          (at == 0 || data[at - 1] == '\n' || is_space(data[at - 1]) || data[at - 1] == ',')) {
        at_ = at;
        return true;
      }
      if (is_space(data[at]) || data[at] == ',') {
        ++at;
        continue;
      }
      if (line == nullptr) {
        at = end;
        break;
      }
      at = static_cast<size_t>(static_cast<const char*>(line) - data) + 1;
      continue;
    }
    while (at < end && !kStructural[static_cast<unsigned char>(data[at])]) ++at;
    if (at == end) break;
    const char c = data[at++];
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else {
      --depth_;
    }
    if (depth_ == 0 && !in_string_) {
      at_ = at;
      return true;
    }
  }
  at_ = at;
  return false;
}

bool JsonSplitter::scan_scalar() {
  while (at_ < end_ && buffer_[at_] != ',' && buffer_[at_] != '}' && buffer_[at_] != ']' &&
         !is_space(buffer_[at_])) {
    ++at_;
  }
  return at_ < end_ || text_ended_;
}

JsonSplitter::Step JsonSplitter::take_key() {
  if (!in_item_) {
    while (at_ < end_ && (is_space(buffer_[at_]) || buffer_[at_] == ',')) ++at_;
    if (at_ == end_) return Step::kNeedMore;
    if (buffer_[at_] == '}') {
      ++at_;
      state_ = State::kDone;
      return Step::kAgain;
    }
    if (buffer_[at_] != '"') {
      ++result_.stray_bytes;
      ++at_;
      return Step::kAgain;
    }
    begin_item();
    ++at_;
  }
  while (at_ < end_) {
    const char c = buffer_[at_++];
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      const size_t size = discard_ ? 0 : at_ - item_ - 2;
      key_ = size <= kMaxKeyBytes ? buffer_.substr(item_ + 1, size) : std::string();
      in_item_ = false;
      state_ = State::kColon;
      return Step::kAgain;
    }
  }
  return Step::kNeedMore;
}

JsonSplitter::Step JsonSplitter::take_value(Sink& sink) {
  if (!in_item_) {
    skip_space();
    if (at_ == end_) return Step::kNeedMore;
    if (key_ == "traceEvents" && buffer_[at_] == '[') {
      ++at_;
      result_.has_events = true;
      comma_seen_ = true;
      state_ = State::kEvents;
      return Step::kAgain;
    }
    begin_item();
    const char first = buffer_[at_];
    if (first == '"') {
      // As a string: its closing quote ends it.
      in_string_ = true;
      depth_ = -1;
      ++at_;
    } else if (first != '{' && first != '[') {
      depth_ = -2;
    }
  }
  if (depth_ == -2) {
    if (!scan_scalar()) return Step::kNeedMore;
  } else if (depth_ == -1) {
    while (in_string_ && at_ < end_) {
      const char c = buffer_[at_++];
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"' || c == '\n') {
        in_string_ = false;
      }
    }
    if (in_string_) return Step::kNeedMore;
  } else if (!scan_value()) {
    return Step::kNeedMore;
  }
  in_item_ = false;
  state_ = State::kKey;
  if (discard_ || broken_) return Step::kAgain;
  const std::string_view text(buffer_.data() + item_, at_ - item_);
  if (!sink.value(key_, text)) {
    result_.stopped = true;
    return Step::kStop;
  }
  return Step::kAgain;
}

JsonSplitter::Step JsonSplitter::take_event(Sink& sink) {
  if (!in_item_) {
    while (at_ < end_ && (is_space(buffer_[at_]) || buffer_[at_] == ',')) {
      comma_seen_ |= buffer_[at_++] == ',';
    }
    if (at_ == end_) return Step::kNeedMore;
    if (buffer_[at_] == ']') {
      ++at_;
      state_ = result_.bare_array ? State::kDone : State::kKey;
      return Step::kAgain;
    }
    if (buffer_[at_] != '{') {
      ++result_.stray_bytes;
      ++at_;
      return Step::kAgain;
    }
    if (!comma_seen_) ++result_.missing_commas;
    begin_item();
  }
  if (!scan_value()) return Step::kNeedMore;
  in_item_ = false;
  comma_seen_ = broken_;
  ++result_.events;
  if (discard_) return Step::kAgain;
  if (broken_) {
    ++result_.broken_events;
    return Step::kAgain;
  }
  if (!sink.event({buffer_.data() + item_, at_ - item_}, base_ + item_)) {
    result_.stopped = true;
    return Step::kStop;
  }
  return Step::kAgain;
}

JsonSplitter::Step JsonSplitter::step(Sink& sink) {
  switch (state_) {
    case State::kStart: {
      if (at_ == 0 && end_ >= 3 && std::memcmp(buffer_.data(), "\xEF\xBB\xBF", 3) == 0) at_ = 3;
      skip_space();
      if (at_ == end_) return Step::kNeedMore;
      const char first = buffer_[at_++];
      if (first != '{' && first != '[') return Step::kStop;
      result_.is_json = true;
      result_.bare_array = result_.has_events = first == '[';
      state_ = first == '[' ? State::kEvents : State::kKey;
      return Step::kAgain;
    }
    case State::kKey:
      return take_key();
    case State::kColon:
      skip_space();
      if (at_ == end_) return Step::kNeedMore;
      if (buffer_[at_] == ':') ++at_;
      state_ = State::kValue;
      return Step::kAgain;
    case State::kValue:
      return take_value(sink);
    case State::kEvents:
      return take_event(sink);
    case State::kDone:
      break;
  }
  return Step::kStop;
}

}  // namespace idlescope::read
