// The taxonomy as tables: dense indices for sums, and the verdict each leaf rolls up to.
//
// A leaf that rolls up to VERDICT_UNSPECIFIED is in no verdict (PROFILER, UNKNOWN, the time
// between notebook cells).
#pragma once

#include <array>
#include <cstddef>

#include "proto/report.pb.h"

namespace idlescope::diagnose {

inline constexpr report::Leaf kLeaves[] = {
    report::BUSY_COMPUTE,       report::BUSY_MEM,
    report::BUSY_COPY_EXPOSED,  report::BUSY_COMM_EXPOSED,
    report::PROFILER,           report::STARTUP_LEAF,
    report::COMPILE_MODULE,     report::COMPILE_JIT,
    report::COMPILE_AUTOTUNE,   report::COMPILE_CAPTURE,
    report::ALLOC_DEVICE,       report::ALLOC_PINNED,
    report::ALLOC_LOCK,         report::CKPT,
    report::DATA_STARTUP,       report::DATA_STORAGE,
    report::DATA_REMOTE,        report::DATA_CPU,
    report::DATA_CONTENDED,     report::DATA_COLLATE,
    report::DATA_IPC,           report::DATA_PIN,
    report::DATA_WAKE,          report::DATA_FETCH,
    report::DATA_QUEUED,        report::DATA_UNSEEN,
    report::XFER_PAGEABLE,      report::XFER_SYNC,
    report::XFER_SMALL,         report::XFER_SLOW,
    report::XFER_OTHER,         report::SYNC_SCALAR,
    report::SYNC_EXPLICIT,      report::SYNC_EVENT,
    report::SYNC_IMPLICIT,      report::COMM_TRANSFER,
    report::COMM_STRAGGLER,     report::COMM_HOST,
    report::COMM_UNVERIFIED,    report::LAUNCH_LEAF,
    report::DISPATCH,           report::HOST_OPTIMIZER,
    report::HOST_BACKWARD,      report::HOST_FORWARD,
    report::HOST_LOGGING,       report::HOST_GC,
    report::HOST_PYTHON,        report::HOST_BLOCKED,
    report::HOST_EVALUATION,    report::UNKNOWN_NOLAUNCH,
    report::UNKNOWN_DEPENDENCY, report::UNKNOWN_NOTHREAD,
    report::UNKNOWN_LOST,       report::NOTEBOOK_IDLE,
};
inline constexpr size_t kLeafCount = std::size(kLeaves);

namespace internal {
constexpr auto make_leaf_index() {
  std::array<uint8_t, 128> index{};
  for (size_t i = 0; i < kLeafCount; ++i) {
    index[static_cast<size_t>(kLeaves[i])] = static_cast<uint8_t>(i);
  }
  return index;
}
inline constexpr auto kLeafIndex = make_leaf_index();
}  // namespace internal

constexpr size_t leaf_index(report::Leaf leaf) {
  return internal::kLeafIndex[static_cast<size_t>(leaf)];
}

constexpr bool is_unknown(report::Leaf leaf) {
  return leaf >= report::UNKNOWN_NOLAUNCH && leaf <= report::UNKNOWN_LOST;
}
constexpr bool is_data(report::Leaf leaf) {
  return leaf >= report::DATA_STARTUP && leaf <= report::DATA_UNSEEN;
}

// A6: leaves roll up to verdicts.
constexpr report::Verdict verdict_of(report::Leaf leaf) {
  switch (leaf) {
    case report::BUSY_COMPUTE:
    case report::BUSY_MEM:
      return report::COMPUTE;
    case report::BUSY_COPY_EXPOSED:
    case report::XFER_PAGEABLE:
    case report::XFER_SYNC:
    case report::XFER_SMALL:
    case report::XFER_SLOW:
    case report::XFER_OTHER:
      return report::TRANSFER;
    case report::BUSY_COMM_EXPOSED:
    case report::COMM_TRANSFER:
    case report::COMM_STRAGGLER:
    case report::COMM_HOST:
    case report::COMM_UNVERIFIED:
      return report::COMM;
    case report::STARTUP_LEAF:
      return report::STARTUP;
    case report::COMPILE_MODULE:
    case report::COMPILE_JIT:
    case report::COMPILE_AUTOTUNE:
    case report::COMPILE_CAPTURE:
      return report::COMPILE;
    case report::ALLOC_DEVICE:
    case report::ALLOC_PINNED:
    case report::ALLOC_LOCK:
      return report::ALLOC;
    case report::CKPT:
      return report::PERIODIC;
    case report::SYNC_SCALAR:
    case report::SYNC_EXPLICIT:
    case report::SYNC_EVENT:
    case report::SYNC_IMPLICIT:
      return report::SYNC;
    case report::LAUNCH_LEAF:
    case report::DISPATCH:
      return report::LAUNCH;
    case report::HOST_OPTIMIZER:
    case report::HOST_BACKWARD:
    case report::HOST_FORWARD:
    case report::HOST_LOGGING:
    case report::HOST_GC:
    case report::HOST_PYTHON:
    case report::HOST_BLOCKED:
    case report::HOST_EVALUATION:
      return report::HOST;
    default:
      return is_data(leaf) ? report::DATA : report::VERDICT_UNSPECIFIED;
  }
}

}  // namespace idlescope::diagnose
