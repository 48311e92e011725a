#include "analysis/report/kernel_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace idlescope::report {

std::string plain_kernel_name(const std::string& recorded) {
  // Names come from files: what is longer than any real name is not worth the time.
  if (recorded.compare(0, 2, "_Z") != 0 || recorded.size() > 8192) return recorded;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(recorded.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && plain ? plain.get() : recorded;
}

std::string short_kernel_name(const std::string& name) {
  const bool cpp = name.find("::") != name.npos || name.compare(0, 5, "void ") == 0;
  if (!cpp) return name;  // "Memcpy HtoD (Pageable -> Device)", "sm90_xmma_gemm_…"
  // Everything outside brackets; "(anonymous namespace)" is a bracket of the name's front.
  std::string outside;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (depth == 0) outside += c;
    if (c == '>' || c == ')' || c == '}') depth = std::max(0, depth - 1);
  }
  outside.erase(outside.find_last_not_of(" :") + 1);
  const size_t scope = outside.rfind("::");
  const size_t space = outside.rfind(' ');
  size_t begin = 0;
  if (scope != outside.npos) begin = scope + 2;
  if (space != outside.npos && space + 1 > begin) begin = space + 1;
  const std::string last = outside.substr(begin);
  return last.empty() ? name : last;
}

std::string plain_call_name(const std::string& recorded) {
  const size_t suffix = recorded.rfind("_v");
  if (suffix == recorded.npos || suffix + 2 == recorded.size()) return recorded;
  const bool version = recorded.find_first_not_of("0123456789", suffix + 2) == recorded.npos;
  return version && recorded.compare(0, 2, "cu") == 0 ? recorded.substr(0, suffix) : recorded;
}

}  // namespace idlescope::report
