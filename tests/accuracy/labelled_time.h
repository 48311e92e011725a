// Device time with class labels, and how two labellings of the same time are compared.
//
// In: truth and prediction as stretches without compute. Out: how much of each true class
// got which predicted class. Stretches are compared by amount inside cells (one cell for
// each long true gap, one for the rest of a step): where inside a gap a cause is drawn is a
// convention, how much it took is not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace idlescope::report {
enum Leaf : int;
}

namespace idlescope::accuracy {

// The causal classes of the report's leaves (analysis F4), and what is none.
enum class Class : uint8_t {
  kCompile,
  kAlloc,
  kCheckpoint,
  kData,
  kTransfer,
  kSync,
  kComm,
  kLaunch,
  kHost,
  kHostBlocked,
  kDispatch,
  kUnknown,
  kOther,
  kBusy
};
inline constexpr size_t kClasses = 14;
inline constexpr size_t kCausal = 11;
const char* class_name(Class c);
Class class_of(report::Leaf leaf);

struct Stretch {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  Class label = Class::kBusy;
};

using Confusion = std::array<std::array<double, kClasses>, kClasses>;  // [true][predicted], ns

// Adds one step [begin, end). Stretches are in time order; what they leave out is busy.
void compare(const std::vector<Stretch>& truth, const std::vector<Stretch>& predicted,
             int64_t begin_ns, int64_t end_ns, Confusion* confusion);

}  // namespace idlescope::accuracy
