// The Python code that is run inside the job, as text in the library.
//
// In: profiler/host/snippet/*.py at build time. Out: the parts in the order in which they run
// in one namespace. Their names appear as file names in tracebacks.
#pragma once

#include <cstddef>

namespace idlescope::host {

struct SnippetPart {
  const char* name;  // "<idlescope loader>"
  const char* text;
};

inline constexpr size_t kSnippetParts = 6;
SnippetPart snippet_part(size_t index);

}  // namespace idlescope::host
