// Cuts a Chrome trace into its events and top-level values without holding the file.
//
// In: a TextStream of JSON: an object with "traceEvents", a bare array, closed or not. Out:
// one callback per event object and one per other top-level value, in file order. Knows
// strings and nesting, nothing else, so that one damaged event costs one event: inside a
// damaged one it waits for the next line that opens an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/read/text_stream.h"

namespace idlescope::read {

class JsonSplitter {
 public:
  // What lies behind a view handed to the sink may be read up to this much past its end.
  static constexpr size_t kPadding = 64;
  // A larger event or value is skipped; the largest seen in the wild is 300 KB.
  static constexpr size_t kMaxItemBytes = size_t{8} << 20;

  class Sink {
   public:
    virtual ~Sink() = default;
    // False: stop reading.
    virtual bool event(std::string_view object, uint64_t offset) = 0;
    virtual bool value(std::string_view key, std::string_view text) = 0;
  };

  struct Result {
    bool is_json = false;  // began with { or [
    bool bare_array = false;
    bool has_events = false;  // "traceEvents" or a bare array was there
    bool complete = false;    // every bracket was closed
    bool stopped = false;     // by the sink
    uint64_t events = 0;
    uint64_t broken_events = 0;  // a string that never ended
    uint64_t oversized = 0;
    uint64_t stray_bytes = 0;     // between events, neither white space nor comma
    uint64_t missing_commas = 0;  // between events
    bool trailing = false;        // more than white space follows the last bracket
    uint64_t end_offset = 0;      // where the text ended, or what is trailing begins
  };

  Result split(TextStream& text, Sink& sink);

 private:
  enum class State { kStart, kKey, kColon, kValue, kEvents, kDone };
  enum class Step { kAgain, kNeedMore, kStop };

  Step step(Sink& sink);
  // After the last bracket: whether anything but white space follows.
  bool find_trailing(TextStream& text);
  Step take_key();
  Step take_value(Sink& sink);
  Step take_event(Sink& sink);
  // Advances over the value that begins at item_; true when its end was found.
  bool scan_value();
  bool scan_scalar();
  void begin_item();
  void skip_space();
  bool refill(TextStream& text);

  std::string buffer_;
  size_t end_ = 0;   // bytes in buffer_
  size_t at_ = 0;    // next byte to look at
  size_t item_ = 0;  // where the current key, value or event begins
  bool in_item_ = false;
  bool discard_ = false;  // item grew too large: not kept any more
  uint64_t base_ = 0;     // offset of buffer_[0] in the text
  // State inside the item.
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool broken_ = false;
  bool text_ended_ = false;
  bool comma_seen_ = true;
  State state_ = State::kStart;
  std::string key_;
  Result result_;
};

}  // namespace idlescope::read
