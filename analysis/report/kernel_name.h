// Kernel and call names as a person wrote them: CUPTI records mangled C++ names, Nsight the
// versioned symbols of the driver.
#pragma once

#include <string>

namespace idlescope::report {

// "_Z4gemmPf" -> "gemm(float*)"; anything else, or a name too long to be one, as it is.
std::string plain_kernel_name(const std::string& recorded);

// What a table has room for: "void at::native::vectorized_elementwise_kernel<4, …>(int, …)" ->
// "vectorized_elementwise_kernel"; template and call arguments and namespaces go.
std::string short_kernel_name(const std::string& name);

// "cudaStreamSynchronize_v3020" -> "cudaStreamSynchronize".
std::string plain_call_name(const std::string& recorded);

}  // namespace idlescope::report
