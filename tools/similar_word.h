// "did you mean": the known word that a misspelt one is closest to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace idlescope::tools {

// The closest of `known` by edit distance (insert, delete, replace, swap of neighbours), if it
// is close: at most a third of the word. Empty: none.
std::string similar_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace idlescope::tools
