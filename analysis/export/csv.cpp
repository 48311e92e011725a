#include <fmt/format.h>

#include <functional>
#include <map>
#include <ostream>

#include "analysis/diagnose/diagnose.h"
#include "analysis/export/event_names.h"
#include "analysis/export/export.h"
#include "analysis/model/model.h"
#include "proto/report.pb.h"

namespace idlescope::exporting {
namespace {

// A field in quotes where RFC 4180 wants them.
std::string quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

class Rows {
 public:
  explicit Rows(std::ostream& out) : out_(out) {}
  Rows& text(std::string_view value) {
    if (!first_) out_ << ',';
    first_ = false;
    out_ << quoted(value);
    return *this;
  }
  Rows& number(int64_t value) { return text(std::to_string(value)); }
  Rows& count(uint64_t value) { return text(std::to_string(value)); }
  Rows& real(double value) { return text(fmt::format("{:.9g}", value)); }
  void end() {
    out_ << "\r\n";
    first_ = true;
  }
  void header(std::initializer_list<const char*> names) {
    for (const char* name : names) text(name);
    end();
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

void leaves(const diagnose::Analysis&, const report::Report& report, Rows& rows) {
  rows.header({"device", "leaf", "total_ns", "per_step_ns", "share", "ci_low", "ci_high",
               "grade_a_ns", "grade_b_ns", "grade_c_ns", "pieces"});
  for (const report::DeviceSummary& device : report.devices()) {
    for (const report::LeafTime& leaf : device.leaves()) {
      rows.count(device.device_id()).text(report::Leaf_Name(leaf.leaf())).number(leaf.total_ns());
      rows.number(leaf.per_step_ns())
          .real(leaf.share())
          .real(leaf.ci().low())
          .real(leaf.ci().high());
      rows.number(leaf.grade_a_ns())
          .number(leaf.grade_b_ns())
          .number(leaf.grade_c_ns())
          .count(leaf.pieces());
      rows.end();
    }
  }
}

void steps(const diagnose::Analysis&, const report::Report& report, Rows& rows) {
  rows.header({"step", "begin_ns", "duration_ns", "window_id", "data_wait_ns", "mark"});
  int64_t number = 0;
  for (const report::StepPoint& point : report.step_points()) {
    rows.number(number++)
        .number(point.begin_ns())
        .number(point.duration_ns())
        .count(point.window_id());
    rows.number(point.data_wait_ns()).text(point.mark()).end();
  }
}

void gaps(const diagnose::Analysis&, const report::Report& report, Rows& rows) {
  rows.header({"gap", "device", "begin_ns", "end_ns", "step", "leaf", "batch", "worker", "ended_by",
               "why"});
  int64_t number = 0;
  for (const report::Gap& gap : report.gaps()) {
    rows.number(number++)
        .count(gap.device_index())
        .number(gap.begin_ns())
        .number(gap.end_ns())
        .number(gap.step());
    rows.text(report::Leaf_Name(gap.top_leaf()))
        .number(gap.batch())
        .number(gap.worker())
        .text(gap.ended_by());
    rows.text(gap.text().text()).end();
  }
}

void kernels(const diagnose::Analysis&, const report::Report& report, Rows& rows) {
  rows.header({"kernel", "count", "total_ns", "fill", "label", "kind"});
  for (const report::KernelSummary& kernel : report.kernels()) {
    rows.text(kernel.name()).count(kernel.count()).number(kernel.total_ns()).real(kernel.fill());
    rows.text(kernel.label()).text(kernel.kind()).end();
  }
}

void copies(const diagnose::Analysis&, const report::Report& report, Rows& rows) {
  rows.header({"path", "count", "bytes", "total_ns", "exposed_ns", "gb_per_s"});
  for (const report::CopySummary& copy : report.copies()) {
    rows.text(copy.path()).count(copy.count()).count(copy.bytes()).number(copy.total_ns());
    rows.number(copy.exposed_ns()).real(copy.gb_per_s()).end();
  }
}

void calls(const diagnose::Analysis&, const report::Report& report, Rows& rows) {
  rows.header({"call", "count", "host_ns", "cost_ns"});
  for (const report::CallSummary& call : report.calls()) {
    rows.text(call.name()).count(call.count()).number(call.host_ns()).number(call.cost_ns()).end();
  }
}

void ops(const diagnose::Analysis& analysis, const report::Report&, Rows& rows) {
  const read::Recording& recording = analysis.model.recording;
  rows.header({"pid", "window_id", "correlation_id", "kind", "name", "device", "stream", "begin_ns",
               "end_ns", "bytes", "launch_begin_ns", "launch_end_ns"});
  for (const read::Process& process : recording.processes) {
    for (const read::Op& op : process.ops) {
      const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
      rows.number(process.header.process().pid());
      rows.count(op.window < process.windows.size() ? process.windows[op.window].id : 0);
      rows.count(op.correlation)
          .text(op_category(descriptor.kind))
          .text(recording.strings[descriptor.name]);
      if (descriptor.device < process.devices.size()) {
        rows.count(process.devices[descriptor.device].info.device_id());
      } else {
        rows.text("");
      }
      if (descriptor.stream < process.streams.size()) {
        rows.count(process.streams[descriptor.stream].stream_id);
      } else {
        rows.text("");
      }
      rows.number(op.begin_ns).number(op.end_ns).count(descriptor.bytes);
      if (op.call < process.calls.size()) {
        rows.number(process.calls[op.call].begin_ns).number(process.calls[op.call].end_ns).end();
      } else {
        rows.text("").text("").end();
      }
    }
  }
}

void host_events(const diagnose::Analysis& analysis, const report::Report&, Rows& rows) {
  const read::Recording& recording = analysis.model.recording;
  rows.header({"pid", "thread_id", "kind", "name", "begin_ns", "end_ns", "iterator", "epoch",
               "batch", "a", "b", "c"});
  for (const read::Process& process : recording.processes) {
    for (const read::HostEvent& event : process.host_events) {
      rows.number(process.header.process().pid()).count(event.thread_id);
      rows.text(trace::HostEventKind_Name(event.kind)).text(event_name(event, recording.strings));
      rows.number(event.begin_ns)
          .number(event.end_ns)
          .count(event.iterator)
          .count(event.epoch)
          .number(event.batch);
      rows.number(event.a).number(event.b).number(event.c).end();
    }
  }
}

using Writer = void (*)(const diagnose::Analysis&, const report::Report&, Rows&);

const std::map<std::string, Writer>& writers() {
  static const std::map<std::string, Writer> all = {
      {"leaves", leaves}, {"steps", steps}, {"gaps", gaps}, {"kernels", kernels},
      {"copies", copies}, {"calls", calls}, {"ops", ops},   {"host-events", host_events},
  };
  return all;
}

}  // namespace

std::vector<std::string> csv_tables() {
  std::vector<std::string> names;
  for (const auto& [name, writer] : writers()) names.push_back(name);
  return names;
}

void write_csv(const std::string& table, const diagnose::Analysis& analysis,
               const report::Report& report, std::ostream& out) {
  const auto writer = writers().find(table);
  if (writer == writers().end()) return;
  Rows rows(out);
  writer->second(analysis, report, rows);
}

}  // namespace idlescope::exporting
