#include "analysis/report/kernel_name.h"

#include <cxxabi.h>

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

}  // namespace idlescope::report
