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
#include "analysis/read/kineto_evidence.h"
#include "analysis/read/kineto_names.h"

namespace idlescope::read {

class KinetoRows {
 public:
  explicit KinetoRows(ImportBuilder& builder) : builder_(builder), marks_(builder) {}

  void take(const KinetoEvent& event);
  // After the last row: steps, loader events, collectives in time order.
  void finish();

  const KinetoEvidence& evidence() const { return evidence_; }
  int64_t main_pid() const;

 private:
  bool has_name(const KinetoEvent& event);
  bool times(const KinetoEvent& event, Ns& begin_ns, Ns& end_ns);
  void take_metadata(const KinetoEvent& event);
  void take_legacy(const KinetoEvent& event);
  void take_host_range(const KinetoEvent& event, RowKind kind);
  void add_host_range(const KinetoEvent& event, bool framework, Ns begin_ns, Ns end_ns);
  void take_call(const KinetoEvent& event, bool driver);
  void take_op(const KinetoEvent& event, RowKind kind);
  void take_sync(const KinetoEvent& event);
  void take_overhead(const KinetoEvent& event);
  void take_collective(const KinetoEvent& event, Ns begin_ns, Ns end_ns);
  uint32_t thread(const KinetoEvent& event);
  uint32_t device_of(const KinetoEvent& event) const;
  uint32_t stream_of(const KinetoEvent& event) const;
  uint32_t correlation_of(const KinetoEvent& event);

  ImportBuilder& builder_;
  ImportMarks marks_;
  KinetoEvidence evidence_;
  std::map<int64_t, uint64_t> rows_by_pid_;  // of host rows
  std::unordered_map<std::string, uint32_t> odd_threads_;
  struct RawCollective {
    Collective collective;
    std::string group;
  };
  std::vector<RawCollective> collectives_;
};

}  // namespace idlescope::read
