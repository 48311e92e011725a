// Steps and loader waits among the ranges of an import, by their well-known names.
//
// In: every named host span an importer meets, in any order. Out: after `finish`, EVENT_STEP
// at each step boundary, EVENT_LOADER_CREATE and EVENT_LOADER_NEXT per loader, in the
// ImportBuilder. Names are PyTorch's: "ProfilerStep#3", "Optimizer.step#SGD.step",
// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"; NVTX ranges "step 3".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/read/import_builder.h"

namespace idlescope::read {

class ImportMarks {
 public:
  explicit ImportMarks(ImportBuilder& builder) : builder_(builder) {}

  enum class Taken {
    kNo,         // an ordinary range
    kAlsoRange,  // a mark, and worth keeping as a range
    kWhole,      // became an event of its own; not a range as well
  };
  Taken take(std::string_view name, uint32_t thread_id, Ns begin_ns, Ns end_ns);
  // Ranges that users put around a step by hand; these names are only believed where the
  // source is known to be the user (NVTX).
  bool take_user_step(std::string_view name, uint32_t thread_id, Ns begin_ns, Ns end_ns);
  void finish();

 private:
  struct Span {
    std::string name;
    uint32_t thread_id;
    Ns begin_ns;
    Ns end_ns;
    int64_t number = -1;
  };

  void finish_steps(std::vector<Span>& spans, trace::StepSource source, std::string_view label);
  void finish_loader();

  ImportBuilder& builder_;
  std::vector<Span> profiler_steps_;
  std::vector<Span> user_steps_;
  std::vector<Span> loader_;
};

}  // namespace idlescope::read
