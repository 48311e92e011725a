// Kernel names as a person wrote them: CUPTI records mangled C++ names.
#pragma once

#include <string>

namespace idlescope::report {

// "_Z4gemmPf" -> "gemm(float*)"; anything else, or a name too long to be one, as it is.
std::string plain_kernel_name(const std::string& recorded);

}  // namespace idlescope::report
