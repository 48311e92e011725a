#include "analysis/read/anomalies.h"

#include <iterator>
#include <utility>

namespace idlescope::read {

void Anomalies::add(const messages::Message& message, messages::Values values, uint64_t count,
                    bool affects_conclusions) {
  for (Anomaly& entry : entries_) {
    if (entry.message.id == message.id && entry.values == values) {
      entry.count += count;
      entry.affects_conclusions |= affects_conclusions;
      return;
    }
  }
  entries_.push_back({message, std::move(values), count, affects_conclusions});
}

void Anomalies::add_counted(const messages::Message& message, const std::string& path,
                            uint64_t count, bool affects_conclusions) {
  if (count == 0) return;
  add(message, {{"path", path}, {"count", std::to_string(count)}}, count, affects_conclusions);
}

void Anomalies::move_into(std::vector<Anomaly>& out) {
  out.insert(out.end(), std::make_move_iterator(entries_.begin()),
             std::make_move_iterator(entries_.end()));
  entries_.clear();
}

}  // namespace idlescope::read
