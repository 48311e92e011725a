#include "analysis/export/event_names.h"

#include <algorithm>

namespace idlescope::exporting {
namespace {

// "COUNTER_RSS_BYTES" -> "rss bytes".
std::string plain(std::string_view enum_name, std::string_view prefix) {
  if (enum_name.substr(0, prefix.size()) == prefix) enum_name.remove_prefix(prefix.size());
  std::string out(enum_name);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c == '_' ? ' ' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return out;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::string_view op_kind_name(trace::OpKind kind) {
  switch (kind) {
    case trace::OP_MEMCPY:
      return "memcpy";
    case trace::OP_MEMSET:
      return "memset";
    default:
      return "kernel";
  }
}

std::string_view op_category(trace::OpKind kind) {
  switch (kind) {
    case trace::OP_MEMCPY:
      return "gpu_memcpy";
    case trace::OP_MEMSET:
      return "gpu_memset";
    default:
      return "kernel";
  }
}

std::string dimensions(const uint32_t (&size)[3]) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

bool is_shown(trace::HostEventKind kind) {
  switch (kind) {
    case trace::EVENT_UNUSED:
    case trace::EVENT_WORKER_FETCH_CPU:
    case trace::EVENT_WORKER_FETCH_IO:
    case trace::EVENT_WORKER_FRAME:
    case trace::EVENT_THREAD_CPU:
    case trace::EVENT_LOADER_SITE:
    case trace::EVENT_WORKER_DATASET:
      return false;
    default:
      return true;
  }
}

std::string event_name(const read::HostEvent& event, const read::Strings& strings) {
  const auto named = [&](int64_t id, const char* otherwise) -> std::string {
    return id > 0 && static_cast<size_t>(id) < strings.size() ? strings[static_cast<uint32_t>(id)]
                                                              : otherwise;
  };
  switch (event.kind) {
    case trace::EVENT_RANGE:
      return named(event.a, "range");
    case trace::EVENT_MARK:
      return named(event.a, "mark");
    case trace::EVENT_LOADER_NEXT:
      return "next()";
    case trace::EVENT_WORKER_FETCH:
      return "fetch batch " + std::to_string(event.batch);
    default:
      return plain(trace::HostEventKind_Name(event.kind), "EVENT_");
  }
}

std::string_view event_category(trace::HostEventKind kind) {
  if (kind < trace::EVENT_WORKER_LOOP) return "loader";
  if (kind < trace::EVENT_PIN_WAIT) return "worker";
  if (kind < trace::EVENT_STEP) return "pin";
  return "host";
}

Track counter_track(trace::CounterKind kind) {
  Track track;
  track.kind = Track::Kind::kCounter;
  track.name = plain(trace::CounterKind_Name(kind), "COUNTER_");
  if (ends_with(track.name, " bytes")) {
    track.unit = "bytes";
  } else if (ends_with(track.name, " ns")) {
    track.unit = "ns";
  } else if (ends_with(track.name, " percent")) {
    track.unit = "%";
  } else if (ends_with(track.name, " mhz")) {
    track.unit = "MHz";
  } else if (ends_with(track.name, " mw")) {
    track.unit = "mW";
  }
  return track;
}

}  // namespace idlescope::exporting
