// PyTorch profiler (Kineto) traces, every dialect since 2020, CUDA and ROCm.
//
// In: the bytes of a Chrome trace JSON, plain or gzip, at once or in pieces. Out: a Process
// appended to the Recording. Memory is the tables plus a few MiB, whatever the size of the file.
// A Chrome trace of somebody else, or of an accelerator that is no GPU, is a Fault that says
// whose it is. What each row becomes is in docs/interop.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/read/fault.h"
#include "analysis/read/text_stream.h"

namespace idlescope::read {

struct Recording;

Expected<void> import_kineto(std::string_view bytes, const std::string& path, Recording& recording);
Expected<void> import_kineto_pieces(TextStream::Source pieces, uint64_t file_bytes,
                                    const std::string& path, Recording& recording);

}  // namespace idlescope::read
