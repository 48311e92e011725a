// What a driver call or host event means for device time that waits for it.
//
// In: calls and events of one process, its copy ops. Out: the leaf of a segment, and
// whether a call waits for the device (syncs, copies that return after their op, frees).
//
// The name of a call says nothing about waiting (N6): a copy counts as blocking where its
// op ended before the call returned, or its host memory is pageable and not tiny.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/diagnose/constants.h"
#include "analysis/diagnose/piece.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

// A blocking copy of at most this is a synchronisation, not a transfer (amendment A1.11).
inline constexpr uint64_t kSyncCopyBytes = 4096;
inline constexpr uint64_t kScalarBytes = 64;
// Up to here the call costs more than the bytes: several in a row can be one.
inline constexpr uint64_t kSmallCopyBytes = 64u << 10;

class CallLeaf {
 public:
  CallLeaf(const model::Model& model, const model::DeviceTimeline& device,
           const Constants& constants);

  trace::CallClass call_class(uint32_t call) const {
    return static_cast<trace::CallClass>(owner_.classes[call]);
  }
  // The call returns only when the device has done something.
  bool waits(uint32_t call) const;
  // A small blocking copy right after another one on its thread, nothing launched between:
  // the host work between them is part of copying piece by piece.
  bool follows_small_copy(uint32_t call) const;
  // It copies something of the host's, more than a scalar or two, to the device.
  bool sends_input(uint32_t call) const;
  // First launch of its function in the recording.
  bool first_use(uint32_t call) const;
  // Leaf of time in which the host was inside the call; LEAF_UNSPECIFIED: the call is
  // ordinary host work (event record, query) and says nothing. `waited_ns`: device time
  // without compute during the call.
  report::Leaf leaf(uint32_t call, Ns waited_ns) const;
  report::Leaf leaf(const read::Overhead& overhead) const;
  // LEAF_UNSPECIFIED for LOADER_NEXT: its time is cut by loader_stages.h.
  report::Leaf leaf(const read::HostEvent& event) const;

  // Leaf of a copy op that compute waited for.
  report::Leaf exposed_copy(const read::Op& op) const;

 private:
  report::Leaf copy_leaf(uint32_t call) const;
  report::Leaf sync_leaf(uint32_t call) const;
  const read::Op* op_of_copy(uint32_t call) const;
  uint32_t thread_of(uint32_t call) const;
  uint64_t copy_bytes(uint32_t call, trace::CopyKind& kind) const;
  void find_small_copies();
  bool in_small_copies(uint32_t call) const;
  report::Leaf leaf_of_copy(uint32_t call) const;
  bool alloc_elsewhere(uint32_t call) const;
  report::Leaf transfer_leaf(const read::Op* op, uint64_t bytes) const;

  const read::Process& process_;
  const model::ProcessModel& owner_;
  const Constants& constants_;
  std::vector<std::pair<uint32_t, uint32_t>> copy_ops_;  // (call, op), sorted
  std::vector<uint32_t> first_uses_;                     // calls, sorted
  std::vector<std::pair<uint32_t, bool>> small_copies_;  // (call, follows another), sorted
};

}  // namespace idlescope::diagnose
