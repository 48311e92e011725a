#include "profiler/host/snippet.h"

// The assembler takes the files in as they are, with a zero behind them.
#define IDLESCOPE_INCLUDE_TEXT(symbol, file)                                               \
  __asm__(".pushsection .rodata\n.globl " #symbol "\n.hidden " #symbol "\n" #symbol        \
          ":\n"                                                                            \
          ".incbin \"" IDLESCOPE_SNIPPET_DIRECTORY "/" file "\"\n.byte 0\n.popsection\n"); \
  extern "C" __attribute__((visibility("hidden"))) const char symbol[]

IDLESCOPE_INCLUDE_TEXT(idlescope_snippet_patching, "patching.py");
IDLESCOPE_INCLUDE_TEXT(idlescope_snippet_loader, "loader.py");
IDLESCOPE_INCLUDE_TEXT(idlescope_snippet_worker, "worker.py");
IDLESCOPE_INCLUDE_TEXT(idlescope_snippet_training, "training.py");
IDLESCOPE_INCLUDE_TEXT(idlescope_snippet_foreign, "foreign.py");
IDLESCOPE_INCLUDE_TEXT(idlescope_snippet_targets, "targets.py");

namespace idlescope::host {

SnippetPart snippet_part(size_t index) {
  const SnippetPart parts[kSnippetParts] = {
      {"<idlescope patching>", idlescope_snippet_patching},
      {"<idlescope loader>", idlescope_snippet_loader},
      {"<idlescope worker>", idlescope_snippet_worker},
      {"<idlescope training>", idlescope_snippet_training},
      {"<idlescope foreign>", idlescope_snippet_foreign},
      {"<idlescope targets>", idlescope_snippet_targets},
  };
  return parts[index];
}

}  // namespace idlescope::host
