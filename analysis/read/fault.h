// Why an input could not be used: a message of the catalogue with its values.
//
// In: any stage that meets unusable input returns tl::unexpected(Fault). Out: the tools
// print `idlescope: [id] text` and exit with 2. Oddities that do not stop the analysis
// are not faults but anomalies (recording.h).
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "proto/fill.h"
#include "proto/message.h"

namespace idlescope::read {

struct Fault {
  messages::Message message;
  messages::Values values;

  std::string text() const { return messages::fill(message.text, values); }
};

template <typename T>
using Expected = tl::expected<T, Fault>;

}  // namespace idlescope::read
