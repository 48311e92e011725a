// Joins rows that are written as a begin and an end (ph "B" and "E") to whole rows.
//
// In: parsed rows with the text of their objects, in the order of the file. Out: for an end,
// the text of the row that it closes: the latest one still open on the same (pid, tid), which
// is what the Chrome trace format says. The PyTorch profiler writes whole rows ("X"); tools
// that filter or merge its files write pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/read/kineto_event.h"

namespace idlescope::read {

class KinetoPairs {
 public:
  void open(const KinetoEvent& begin, std::string_view object);
  // The text, readable JsonSplitter::kPadding bytes past its end; nothing: no such row is open.
  std::optional<std::string> close(const KinetoEvent& end);

  // Begins that never ended and ends that never began.
  uint64_t unmatched() const { return open_rows_ + ends_alone_ + refused_; }

 private:
  static std::string key(const KinetoEvent& event);

  std::unordered_map<std::string, std::vector<std::string>> open_;
  uint64_t open_rows_ = 0;
  uint64_t ends_alone_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace idlescope::read
