// PyTorch profiler (Kineto) traces, every dialect since 2020, CUDA and ROCm.
//
// In: the bytes of a Chrome trace JSON, plain or gzip. Out: a Process appended to the
// Recording. Streams: memory is the tables plus a few MiB, whatever the size of the file.
// A Chrome trace of somebody else, or of an accelerator that is no GPU, is a Fault that says
// whose it is. What each row becomes is in docs/interop.md.
#pragma once

#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::read {

struct Recording;

Expected<void> import_kineto(std::string_view bytes, const std::string& path, Recording& recording);

}  // namespace idlescope::read
