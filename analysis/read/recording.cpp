#include "analysis/read/recording.h"

#include <algorithm>

namespace idlescope::read {

uint32_t Strings::add(std::string_view text) {
  const auto found = index_.find(text);
  if (found != index_.end()) return found->second;
  const auto [entry, inserted] =
      index_.emplace(std::string(text), static_cast<uint32_t>(texts_.size()));
  texts_.push_back(&entry->first);
  return entry->second;
}

bool Window::records(trace::Kind kind) const {
  return std::find(begin.kinds().begin(), begin.kinds().end(), static_cast<int>(kind)) !=
         begin.kinds().end();
}

}  // namespace idlescope::read
