// Nsight Systems exports (nsys export --type sqlite), all schema versions seen since 2021.
//
// In: the bytes of the SQLite file. Out: one Process per operating-system process that used
// the GPU or was annotated. Tables exist only where nsys recorded something, columns come and
// go between versions: what is missing is missing evidence, not an error.
#pragma once

#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::read {

struct Recording;

Expected<void> import_nsys(std::string_view bytes, const std::string& path, Recording& recording);

}  // namespace idlescope::read
