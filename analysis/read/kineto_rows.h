// What the rows of a PyTorch profile mean: categories of all dialects to facts.
//
// In: parsed events, one by one. Out: calls, ops, ranges and marks in an ImportBuilder, and
// the evidence by which a foreign file is told apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/read/import_builder.h"
#include "analysis/read/import_marks.h"
#include "analysis/read/kineto_event.h"

namespace idlescope::read {

enum class RowKind : uint8_t {
  kForeign,  // a category of no PyTorch profiler
  kCpuOp,
  kAnnotation,
  kPython,
  kCall,
  kDriverCall,
  kKernel,
  kCopy,
  kMemset,
  kSync,
  kOverhead,
  kTrace,        // the span of the recording itself
  kIgnored,      // flows, instants, GPU-side copies of annotations
  kMissingGpu,   // rows that stand where device records should be (range profiler)
  kUnsupported,  // another accelerator's rows
};

RowKind row_kind(std::string_view category);

class KinetoRows {
 public:
  explicit KinetoRows(ImportBuilder& builder) : builder_(builder), marks_(builder) {}

  void take(const KinetoEvent& event);
  // After the last row: steps, loader events, collectives in time order.
  void finish();

  struct Evidence {
    uint64_t known = 0;  // rows that only a PyTorch profiler writes
    uint64_t unsupported = 0;
    std::string unsupported_category;
    uint64_t missing_gpu = 0;
    uint64_t foreign = 0;
    std::map<std::string, uint64_t, std::less<>> foreign_categories;
    bool tensorflow = false;
    bool horovod = false;
    bool dftracer = false;
    bool cuda_calls_without_category = false;
    uint64_t bad_numbers = 0;  // times that are no numbers ("NaN")
    uint64_t no_duration = 0;
    uint64_t huge_ids = 0;  // correlation ids that do not fit
    int max_decimals = 0;   // of a time stamp in µs
  };
  const Evidence& evidence() const { return evidence_; }
  int64_t main_pid() const;

 private:
  bool times(const KinetoEvent& event, Ns& begin_ns, Ns& end_ns);
  void take_metadata(const KinetoEvent& event);
  void take_legacy(const KinetoEvent& event);
  void take_host_range(const KinetoEvent& event, RowKind kind);
  void take_call(const KinetoEvent& event, bool driver);
  void take_op(const KinetoEvent& event, RowKind kind);
  void take_sync(const KinetoEvent& event);
  void take_overhead(const KinetoEvent& event);
  void take_collective(const KinetoEvent& event, Ns begin_ns, Ns end_ns);
  void note_foreign(const KinetoEvent& event);
  uint32_t thread(const KinetoEvent& event);
  uint32_t device_of(const KinetoEvent& event) const;
  uint32_t stream_of(const KinetoEvent& event) const;
  uint32_t correlation_of(const KinetoEvent& event);

  ImportBuilder& builder_;
  ImportMarks marks_;
  Evidence evidence_;
  std::map<int64_t, uint64_t> rows_by_pid_;  // of host rows
  std::unordered_map<std::string, uint32_t> odd_threads_;
  struct RawCollective {
    Collective collective;
    std::string group;
  };
  std::vector<RawCollective> collectives_;
};

}  // namespace idlescope::read
