// What the rows of a Chrome trace say about who wrote it, and what is odd about them.
//
// In: rows as they are met. Out: counts for the anomalies of an import, and by which signs a
// file is refused: another tool's, another accelerator's, several processes merged into one
// list of events, times in another unit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analysis/read/kineto_event.h"
#include "analysis/read/recording.h"

namespace idlescope::read {

struct KinetoEvidence {
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
  uint64_t timed = 0;        // rows with usable times
  uint64_t bad_numbers = 0;  // times that are no numbers ("NaN") or do not fit
  std::string bad_number;    // the first of them, as spelled
  uint64_t no_duration = 0;
  uint64_t nameless = 0;
  uint64_t huge_ids = 0;  // correlation ids that do not fit
  int max_decimals = 0;   // of a time stamp in µs

  void foreign_row(const KinetoEvent& event);
  void called(const KinetoId& pid);
  void launched(Ns duration_ns);
  void ran_kernel(Ns duration_ns);

  // Processes that made CUDA calls. One profiler sees one process: more were merged later, and
  // their correlation ids mean nothing together.
  size_t calling_processes() const { return callers_.size(); }
  // Neither a GPU function nor a launch ends within 200 ns, the shortest are near 1 µs: times in
  // milliseconds or seconds.
  bool times_too_short() const {
    return (kernels_ >= kEnoughRows && short_kernels_ * 2 > kernels_) ||
           (timed_launches_ >= kEnoughRows && short_launches_ * 2 > timed_launches_);
  }
  // A launch takes a few µs unless the queue is full, and it is not always full: nanoseconds.
  bool times_too_long() const {
    return launches_ >= kEnoughRows && quick_launches_ * 100 < launches_;
  }

 private:
  static constexpr uint64_t kEnoughRows = 50;

  std::unordered_map<std::string, uint64_t> callers_;
  KinetoId last_caller_;
  std::string last_caller_text_;
  uint64_t kernels_ = 0;
  uint64_t short_kernels_ = 0;
  uint64_t launches_ = 0;
  uint64_t quick_launches_ = 0;
  uint64_t timed_launches_ = 0;
  uint64_t short_launches_ = 0;
};

}  // namespace idlescope::read
