#include "tools/live_progress.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <vector>

#include "analysis/read/byte_source.h"
#include "analysis/read/host_chunk.h"
#include "analysis/read/packet_stream.h"
#include "analysis/read/zstd_frame.h"

namespace idlescope::tools {
namespace {

// Fields of trace.Packet.
constexpr uint32_t kHeader = 1;
constexpr uint32_t kWindowBegin = 5;
constexpr uint32_t kWindowEnd = 6;
constexpr uint32_t kHostChunk = 11;
constexpr uint32_t kZstdTrace = 31;

struct Raw {
  uint64_t step_marks = 0;
  int32_t rank = -1;
  bool is_main = false;
  LiveCounts counts;

  void finish() { counts.steps = step_marks > 0 ? step_marks : counts.batches_taken; }
};

void count_events(const std::vector<read::HostEvent>& events, Raw* out) {
  for (const read::HostEvent& event : events) {
    switch (event.kind) {
      case trace::EVENT_STEP:
        ++out->step_marks;
        break;
      case trace::EVENT_LOADER_NEXT:
        ++out->counts.batches_taken;
        break;
      case trace::EVENT_WORKER_PUT:
        ++out->counts.batches_put;
        break;
      case trace::EVENT_LOADER_WORKER_STARTED:
        ++out->counts.workers_started;
        break;
      default:
        break;
    }
  }
}

void count_packets(std::string_view bytes, bool nested, Raw* out) {
  read::PacketStream stream(bytes);
  while (const std::optional<read::PacketSlice> packet = stream.next()) {
    if (packet->field == kWindowBegin) ++out->counts.windows_opened;
    if (packet->field == kWindowEnd) ++out->counts.windows_closed;
    if (packet->field == kHeader) {
      trace::Header header;
      if (header.ParseFromArray(packet->body.data(), static_cast<int>(packet->body.size()))) {
        const trace::Process& process = header.process();
        if (process.has_rank() && process.world_size() != 1) out->rank = process.rank();
        out->is_main = process.role() == trace::Process::ROLE_MAIN;
      }
    }
    if (packet->field == kHostChunk) {
      std::vector<read::HostEvent> events;
      read::decode_host_chunk(packet->body, packet->cut, events);
      count_events(events, out);
    }
    if (packet->field == kZstdTrace && !nested) {
      if (const auto content = read::expand_zstd(packet->body)) {
        count_packets(*content, true, out);
      }
    }
  }
}

}  // namespace

std::vector<LiveProcess> live_processes(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<LiveProcess> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    LiveProcess process;
    if (!parse_trace_file_name(entry.path().filename().string(), &process.name)) continue;
    auto source = read::ByteSource::open(entry.path().string());
    if (!source) continue;
    const auto bytes = source->bytes();
    if (!bytes) continue;
    Raw raw;
    count_packets(*bytes, false, &raw);
    raw.finish();
    process.counts = raw.counts;
    process.counts.files = 1;
    process.rank = raw.rank;
    process.is_main = raw.is_main;
    process.bytes = bytes->size();
    out.push_back(process);
  }
  std::sort(out.begin(), out.end(), [](const LiveProcess& a, const LiveProcess& b) {
    return std::tie(a.rank, a.name.pid) < std::tie(b.rank, b.name.pid);
  });
  return out;
}

LiveCounts count_live(const std::string& directory) {
  namespace fs = std::filesystem;
  Raw raw;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    TraceFileName name;
    if (!parse_trace_file_name(entry.path().filename().string(), &name)) continue;
    ++raw.counts.files;
    auto source = read::ByteSource::open(entry.path().string());
    if (!source) continue;
    if (const auto bytes = source->bytes()) count_packets(*bytes, false, &raw);
  }
  raw.finish();
  return raw.counts;
}

}  // namespace idlescope::tools
