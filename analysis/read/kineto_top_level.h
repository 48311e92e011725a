// What a PyTorch profile says beside its events: device, rank, versions, base of its times.
//
// In: the top-level values of the JSON as they are met, and the file's name. Out: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::read {

class KinetoTopLevel {
 public:
  KinetoTopLevel();
  ~KinetoTopLevel();
  KinetoTopLevel(const KinetoTopLevel&) = delete;
  KinetoTopLevel& operator=(const KinetoTopLevel&) = delete;

  // `text` may be read JsonSplitter::kPadding bytes past its end.
  void take(std::string_view key, std::string_view text);

  bool kineto = false;              // a key that only a PyTorch profiler writes
  std::string other_tool;           // a key by which another tool is known
  bool is_one_event = false;        // the object is an event itself: JSON lines
  bool is_execution_trace = false;  // torch.profiler.ExecutionTraceObserver
  std::optional<Ns> base_ns;
  bool has_rank = false;
  int32_t rank = 0;
  int32_t world_size = 0;
  uint32_t cupti_version = 0;
  uint32_t runtime_version = 0;
  uint32_t driver_version = 0;
  struct DeviceProperties {
    uint32_t id = 0;
    trace::Device info;
  };
  std::vector<DeviceProperties> devices;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// torch.profiler names files HOST_PID.TIME.pt.trace.json; people name them rank3.json.
std::string kineto_host_of_name(const std::string& path);
std::optional<int32_t> kineto_rank_of_name(const std::string& path);

}  // namespace idlescope::read
