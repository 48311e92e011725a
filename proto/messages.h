// The message catalogue as constants: every sentence a user can see, by stable id.
//
// In: proto/messages_en.def. Out: one `Message` per line of it, and `find` by id.
// Used by the recorder (its one line), the analyzer (reports) and the tools (errors).
// No allocation, no dependency beyond the standard headers; usable from C++17.
#pragma once

#include <string_view>

#include "proto/message.h"

namespace idlescope::messages {

#define IDLESCOPE_MESSAGE(symbol, id, text) inline constexpr Message symbol{id, text};
#include "proto/messages_en.def"
#undef IDLESCOPE_MESSAGE

inline constexpr Message kAll[] = {
#define IDLESCOPE_MESSAGE(symbol, id, text) symbol,
#include "proto/messages_en.def"
#undef IDLESCOPE_MESSAGE
};

// The message of that id, or null.
constexpr const Message* find(std::string_view id) {
  for (const Message& message : kAll) {
    if (message.id == id) return &message;
  }
  return nullptr;
}

}  // namespace idlescope::messages
