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

Ns Window::switching_ns(Ns from_ns, Ns to_ns) const {
  const auto overlap = [&](Ns first, Ns last) {
    return std::max<Ns>(0, std::min(last, to_ns) - std::max(first, from_ns));
  };
  // Of a detach only what was not waiting for a step mark, wherever in it that was.
  const Ns detach_ns = std::max(end.detach_ns(), end.stood_ns());
  return overlap(attach_begin_ns(), begin_ns) +
         std::min(overlap(end_ns, detach_end_ns()), detach_ns);
}

}  // namespace idlescope::read
