// Chrome trace events ("chrome://tracing", Perfetto's importer, TensorBoard). Times are us
// with three decimals, so no ns is lost; categories and argument names are those that
// PyTorch's profiler writes, so its readers understand the file.
#include <fmt/format.h>

#include <ostream>
#include <unordered_map>

#include "analysis/export/event_sink.h"
#include "analysis/export/export.h"
#include "analysis/report/html/markup.h"

namespace idlescope::exporting {
namespace {

std::string json_text(std::string_view text) { return "\"" + report::escape_json(text) + "\""; }

std::string microseconds(int64_t ns) {
  const bool negative = ns < 0;
  const auto magnitude = static_cast<uint64_t>(negative ? -ns : ns);
  return fmt::format("{}{}.{:03}", negative ? "-" : "", magnitude / 1000, magnitude % 1000);
}

class ChromeSink : public EventSink {
 public:
  explicit ChromeSink(std::ostream& out) : out_(out) {
    out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }

  void track(const Track& track) override {
    Place place{track.pid, track.tid, track.name};
    const auto parent = places_.find(track.parent);
    if (parent != places_.end()) place.pid = parent->second.pid;
    // Tracks that are no threads get numbers no kernel thread has.
    if (track.kind == Track::Kind::kSlices || track.kind == Track::Kind::kGroup) {
      place.tid = (int64_t{1} << 32) + static_cast<int64_t>(track.id);
    }
    places_[track.id] = place;
    if (track.kind == Track::Kind::kProcess) {
      line(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})",
                       place.pid, json_text(track.name)));
    } else if (track.kind == Track::Kind::kThread || track.kind == Track::Kind::kSlices) {
      line(
          fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                      place.pid, place.tid, json_text(track.name)));
      line(fmt::format(
          R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
          place.pid, place.tid, track.rank));
    }
  }

  void slice(const Slice& slice) override {
    const Place& place = places_[slice.track];
    const bool instant = slice.end_ns <= slice.begin_ns;
    std::string text =
        fmt::format(R"({{"ph":"{}","name":{},"cat":{},"pid":{},"tid":{},"ts":{})",
                    instant ? "i" : "X", json_text(slice.name), json_text(slice.category),
                    place.pid, place.tid, microseconds(slice.begin_ns));
    text += instant ? ",\"s\":\"t\"" : ",\"dur\":" + microseconds(slice.end_ns - slice.begin_ns);
    if (!slice.numbers.empty() || !slice.texts.empty()) {
      text += ",\"args\":{";
      bool first = true;
      for (const auto& [name, value] : slice.numbers) {
        text += fmt::format("{}{}:{}", first ? "" : ",", json_text(name), value);
        first = false;
      }
      for (const auto& [name, value] : slice.texts) {
        text += fmt::format("{}{}:{}", first ? "" : ",", json_text(name), json_text(value));
        first = false;
      }
      text += '}';
    }
    line(text + "}");
    flow("s", slice.flow_out, slice, place);
    flow("f", slice.flow_in, slice, place);
  }

  void counter(uint64_t track, int64_t time_ns, int64_t value) override {
    const Place& place = places_[track];
    line(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"value":{}}}}})",
                     json_text(place.name), place.pid, microseconds(time_ns), value));
  }

  void finish() override { out_ << "\n]}\n"; }

 private:
  struct Place {
    int64_t pid = 0;
    int64_t tid = 0;
    std::string name;
  };

  void flow(const char* phase, uint64_t id, const Slice& slice, const Place& place) {
    if (id == 0) return;
    line(fmt::format(
        R"({{"ph":"{}","id":{},"name":"launch","cat":"launch","pid":{},"tid":{},"ts":{}{}}})",
        phase, id, place.pid, place.tid, microseconds(slice.begin_ns),
        *phase == 'f' ? ",\"bp\":\"e\"" : ""));
  }

  void line(const std::string& text) {
    if (!first_) out_ << ",\n";
    first_ = false;
    out_ << text;
  }

  std::ostream& out_;
  bool first_ = true;
  std::unordered_map<uint64_t, Place> places_;
};

}  // namespace

void write_chrome_json(const diagnose::Analysis& analysis, std::ostream& out) {
  ChromeSink sink(out);
  walk(analysis, sink);
}

}  // namespace idlescope::exporting
