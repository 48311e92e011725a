#include "tools/similar_word.h"

#include <algorithm>

namespace idlescope::tools {
namespace {

// Optimal string alignment distance (Damerau 1964, without repeated edits of one place).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string similar_word(std::string_view word, const std::vector<std::string>& known) {
  // A name longer than any of ours is no slip of the finger.
  if (word.size() > 64) return "";
  std::string best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t far = distance(word, candidate);
    if (far < least) {
      least = far;
      best = candidate;
    }
  }
  return best;
}

}  // namespace idlescope::tools
