// One line of the message catalogue. Apart from the catalogue itself (messages.h), so that a
// new sentence does not rebuild what only carries sentences.
#pragma once

#include <string_view>

namespace idlescope::messages {

struct Message {
  std::string_view id;    // stable, the same in every language; "disk-full"
  std::string_view text;  // English, with {named} values
};

}  // namespace idlescope::messages
