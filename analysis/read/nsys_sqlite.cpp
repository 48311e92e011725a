#include "analysis/read/nsys_sqlite.h"

#include <map>
#include <string>
#include <utility>

#include "analysis/read/call_class.h"
#include "analysis/read/nsys_enums.h"
#include "analysis/read/nsys_host.h"
#include "analysis/read/nsys_machine.h"
#include "analysis/read/nsys_sides.h"
#include "analysis/read/recording.h"
#include "analysis/read/sqlite_file.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

using Side = NsysSides::Side;

class NsysImport {
 public:
  NsysImport(std::string_view bytes, const std::string& path, Recording& recording)
      : file_(bytes), path_(path), recording_(recording), sides_(file_, path_, recording) {}

  Expected<void> run() {
    if (auto checked = check(); !checked) return checked;
    sides_.read_strings();
    read_kernels();
    read_copies();
    read_graphs();
    read_calls();
    read_edges();
    read_nsys_overheads(sides_);
    if (sides_.all().empty()) return no_cuda();
    read_nsys_annotations(sides_);
    read_nsys_os_calls(sides_);
    describe_nsys_machine(sides_);
    for (auto& [global_pid, side] : sides_.all()) {
      Anomalies& anomalies = side->builder.anomalies();
      anomalies.add_counted(messages::kImportBadNumbers, path_, side->bad_numbers, true);
      anomalies.add_counted(messages::kNsysNoNames, path_, side->nameless_calls, true);
      side->marks.finish();
      side->builder.finish();
    }
    if (file_.was_open()) {
      recording_.anomalies.push_back({messages::kNsysOpen, {{"path", path_}}, 1, true});
    }
    if (!file_.error().empty()) {
      recording_.truncated = true;
      recording_.anomalies.push_back(
          {messages::kNsysDamaged, {{"path", path_}, {"detail", file_.error()}}, 1, true});
    }
    recording_.origin = Origin::kNsys;
    return {};
  }

 private:
  Expected<void> check() const {
    const auto& tables = file_.tables();
    const auto nsys_table = [](const std::string& name) {
      return name.rfind("CUPTI_ACTIVITY_KIND_", 0) == 0 || name == "TARGET_INFO_SYSTEM_ENV" ||
             name == "META_DATA_EXPORT" || name == "EXPORT_META_DATA" || name == "ProcessStreams" ||
             name == "NVTX_EVENTS" || name == "OSRT_API";
    };
    for (const std::string& name : tables) {
      if (nsys_table(name)) return {};
    }
    if (tables.empty() && !file_.error().empty()) {
      return tl::unexpected(Fault{messages::kNotATrace,
                                  {{"path", path_},
                                   {"offset", "0"},
                                   {"expected", "an SQLite database"},
                                   {"found", "one that is damaged (" + file_.error() + ")"}}});
    }
    return tl::unexpected(
        Fault{messages::kForeignFile,
              {{"path", path_},
               {"what", "an SQLite database, but no Nsight Systems export"},
               {"todo", "Export the report: nsys export --type sqlite run.nsys-rep"}}});
  }

  tl::unexpected<Fault> no_cuda() const {
    return tl::unexpected(Fault{messages::kNsysNoCuda, {{"path", path_}}});
  }

  void read_kernels() {
    file_.scan("CUPTI_ACTIVITY_KIND_KERNEL",
               {"start",
                "end",
                "deviceId",
                "contextId",
                "streamId",
                "correlationId",
                "globalPid",
                "demangledName",
                "shortName",
                "registersPerThread",
                "gridX",
                "gridY",
                "gridZ",
                "blockX",
                "blockY",
                "blockZ",
                "staticSharedMemory",
                "dynamicSharedMemory",
                "graphNodeId",
                "graphId"},
               [this](const SqliteRow& row) {
                 Side& to = sides_.side(static_cast<uint64_t>(row.integer(6)));
                 OpDescriptor op;
                 op.kind = trace::OP_KERNEL;
                 std::string_view name = sides_.text(row.integer(7));
                 if (name.empty()) name = sides_.text(row.integer(8));
                 op.name = recording_.strings.add(name);
                 place(row, 2, to, op);
                 op.registers_per_thread = row.id(9);
                 for (size_t i = 0; i < 3; ++i) {
                   op.grid[i] = row.id(10 + i);
                   op.block[i] = row.id(13 + i);
                 }
                 op.shared_bytes = row.id(16) + row.id(17);
                 op.graph_node_id = static_cast<uint64_t>(row.integer(18));
                 op.graph_id = row.id(19);
                 to.builder.saw(trace::KIND_KERNEL);
                 if (op.graph_node_id != 0) {
                   to.builder.saw(trace::KIND_GRAPH_NODE);
                   to.node_correlations.insert(row.id(5));
                 }
                 add(row, to, op, 5);
               });
  }

  void read_copies() {
    file_.scan("CUPTI_ACTIVITY_KIND_MEMCPY",
               {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
                "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"},
               [this](const SqliteRow& row) {
                 Side& to = sides_.side(static_cast<uint64_t>(row.integer(6)));
                 OpDescriptor op;
                 op.kind = trace::OP_MEMCPY;
                 place(row, 2, to, op);
                 op.bytes = static_cast<uint64_t>(row.integer(7));
                 op.copy_kind = nsys_copy_kind(row.integer(8));
                 op.src_kind = nsys_memory_kind(row.integer(9, -1));
                 op.dst_kind = nsys_memory_kind(row.integer(10, -1));
                 op.graph_node_id = static_cast<uint64_t>(row.integer(11));
                 to.builder.saw(trace::KIND_MEMCPY);
                 add(row, to, op, 5);
               });
    file_.scan("CUPTI_ACTIVITY_KIND_MEMSET",
               {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
                "bytes", "memKind", "graphNodeId"},
               [this](const SqliteRow& row) {
                 Side& to = sides_.side(static_cast<uint64_t>(row.integer(6)));
                 OpDescriptor op;
                 op.kind = trace::OP_MEMSET;
                 place(row, 2, to, op);
                 op.bytes = static_cast<uint64_t>(row.integer(7));
                 op.dst_kind = nsys_memory_kind(row.integer(8, -1));
                 op.graph_node_id = static_cast<uint64_t>(row.integer(9));
                 to.builder.saw(trace::KIND_MEMSET);
                 add(row, to, op, 5);
               });
  }

  // A graph launch as one row. Where its nodes were recorded as kernels too, the row would
  // count their time twice.
  void read_graphs() {
    file_.scan("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
               {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
                "graphId", "graphExecId"},
               [this](const SqliteRow& row) {
                 Side& to = sides_.side(static_cast<uint64_t>(row.integer(6)));
                 if (to.node_correlations.count(row.id(5)) != 0) return;
                 OpDescriptor op;
                 op.kind = trace::OP_GRAPH;
                 op.name = recording_.strings.add("CUDA graph");
                 place(row, 2, to, op);
                 op.graph_id = row.id(7) != 0 ? row.id(7) : row.id(8);
                 to.builder.saw(trace::KIND_GRAPH_TRACE);
                 add(row, to, op, 5);
               });
  }

  void place(const SqliteRow& row, size_t first_column, Side& to, OpDescriptor& op) {
    const uint32_t device_id = row.id(first_column);
    op.device = to.builder.device(device_id);
    op.context_id = row.id(first_column + 1);
    op.stream = to.builder.stream(op.context_id, row.id(first_column + 2), device_id);
  }

  static void add(const SqliteRow& row, Side& to, const OpDescriptor& op, size_t correlation) {
    Ns begin_ns = 0;
    Ns end_ns = 0;
    if (!NsysSides::times(row, 0, 1, to, begin_ns, end_ns)) return;
    to.builder.add_op(to.builder.op_descriptor(op), begin_ns, end_ns, row.id(correlation));
  }

  void read_calls() {
    file_.scan("CUPTI_ACTIVITY_KIND_RUNTIME",
               {"start", "end", "globalTid", "correlationId", "nameId"},
               [this](const SqliteRow& row) {
                 Side& to = sides_.side(nsys_process_of(row.integer(2)));
                 Ns begin_ns = 0;
                 Ns end_ns = 0;
                 if (!NsysSides::times(row, 0, 1, to, begin_ns, end_ns)) return;
                 const std::string_view text = sides_.text(row.integer(4));
                 if (text.empty()) {  // a launch, a wait? Nobody knows.
                   ++to.nameless_calls;
                   return;
                 }
                 const CallName name = classify_call(text);
                 CallDescriptor call;
                 call.call_class = name.call_class;
                 call.copy_kind = name.copy_kind;
                 call.driver = name.driver;
                 call.name = recording_.strings.add(text);
                 call.thread_id = nsys_thread_of(row.integer(2));
                 to.builder.add_call(to.builder.call_descriptor(call), begin_ns, end_ns, row.id(3));
                 for (const trace::Kind kind :
                      {trace::KIND_CALL_LAUNCH, trace::KIND_CALL_COPY, trace::KIND_CALL_SYNC,
                       trace::KIND_CALL_ALLOC, trace::KIND_CALL_MODULE, trace::KIND_CALL_GRAPH,
                       trace::KIND_CALL_EVENT, trace::KIND_CALL_OTHER}) {
                   to.builder.saw(kind);
                 }
               });
  }

  // eventSyncId is unique per record; eventId is reused and no key.
  void read_edges() {
    std::map<std::pair<uint64_t, int64_t>, uint32_t> records;
    file_.scan("CUPTI_ACTIVITY_KIND_CUDA_EVENT", {"globalPid", "eventSyncId", "correlationId"},
               [&records](const SqliteRow& row) {
                 if (row.integer(1) <= 0 || row.integer(1) >= UINT32_MAX) return;
                 records[{static_cast<uint64_t>(row.integer(0)), row.integer(1)}] = row.id(2);
               });
    file_.scan("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
               {"globalPid", "contextId", "streamId", "correlationId", "eventSyncId"},
               [this, &records](const SqliteRow& row) {
                 const uint64_t global_pid = static_cast<uint64_t>(row.integer(0));
                 Side& to = sides_.side(global_pid);
                 const uint32_t correlation = row.id(3);
                 const uint32_t stream_id = row.id(2);
                 if (correlation == 0) return;
                 if (stream_id != 0 && stream_id != UINT32_MAX) {
                   to.builder.call_stream(correlation, row.id(1), stream_id);
                 }
                 const auto record = records.find({global_pid, row.integer(4)});
                 if (record != records.end()) to.builder.add_edge(record->second, correlation);
               });
  }

  SqliteFile file_;
  std::string path_;
  Recording& recording_;
  NsysSides sides_;
};

}  // namespace

Expected<void> import_nsys(std::string_view bytes, const std::string& path, Recording& recording) {
  return NsysImport(bytes, path, recording).run();
}

}  // namespace idlescope::read
