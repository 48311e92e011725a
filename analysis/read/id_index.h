// Maps the ids of a file (dense from 1, in honest files) to table indices.
//
// In: ids as recorded. Out: index or kNone. A plain array while ids are dense, a hash map for
// the rest, so that one absurd id in a damaged file does not allocate gigabytes.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace idlescope::read {

class IdIndex {
 public:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  // False: the id is already there (and keeps its first meaning).
  bool add(uint64_t id, uint32_t index) {
    if (find(id) != kAbsent) return false;
    if (id < dense_.size() + kSlack) {
      if (id >= dense_.size()) dense_.resize(static_cast<size_t>(id) + 1, kAbsent);
      dense_[static_cast<size_t>(id)] = index;
    } else {
      sparse_.emplace(id, index);
    }
    return true;
  }

  uint32_t find(uint64_t id) const {
    if (id < dense_.size() && dense_[static_cast<size_t>(id)] != kAbsent) {
      return dense_[static_cast<size_t>(id)];
    }
    if (sparse_.empty()) return kAbsent;
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? kAbsent : found->second;
  }

 private:
  static constexpr size_t kSlack = 4096;

  std::vector<uint32_t> dense_;
  std::unordered_map<uint64_t, uint32_t> sparse_;
};

}  // namespace idlescope::read
