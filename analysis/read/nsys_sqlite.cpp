#include "analysis/read/nsys_sqlite.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "analysis/read/call_class.h"
#include "analysis/read/import_builder.h"
#include "analysis/read/import_marks.h"
#include "analysis/read/recording.h"
#include "analysis/read/sqlite_file.h"
#include "proto/messages.h"

namespace idlescope::read {
namespace {

// Global ids: 8 bits hardware, 8 bits virtual machine, 24 bits pid, 24 bits tid (Nsight
// Systems documentation, "Export to SQLite", common fields).
constexpr uint64_t kThreadMask = 0xFFFFFF;
uint64_t process_of(int64_t global_tid) { return static_cast<uint64_t>(global_tid) & ~kThreadMask; }
uint32_t pid_of(uint64_t global_pid) {
  return static_cast<uint32_t>(global_pid >> 24 & kThreadMask);
}
uint32_t thread_of(int64_t global_tid) {
  return static_cast<uint32_t>(static_cast<uint64_t>(global_tid) & kThreadMask);
}

// ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND, equal in all versions seen.
trace::CopyKind copy_kind(int64_t value) {
  switch (value) {
    case 1:
    case 3:
    case 11:
      return trace::COPY_H2D;
    case 2:
    case 4:
    case 12:
      return trace::COPY_D2H;
    case 5:
    case 6:
    case 7:
    case 8:
    case 13:
      return trace::COPY_D2D;
    case 9:
      return trace::COPY_H2H;
    case 10:
      return trace::COPY_P2P;
    default:
      return trace::COPY_UNKNOWN;
  }
}

trace::MemoryKind memory_kind(int64_t value) {
  switch (value) {
    case 0:
      return trace::MEMORY_PAGEABLE;
    case 1:
      return trace::MEMORY_PINNED;
    case 2:
    case 5:
      return trace::MEMORY_DEVICE;
    case 3:
      return trace::MEMORY_ARRAY;
    case 4:
    case 6:
      return trace::MEMORY_MANAGED;
    default:
      return trace::MEMORY_UNKNOWN;
  }
}

trace::OverheadKind overhead_kind(int64_t value) {
  switch (value) {
    case 2:
      return trace::OVERHEAD_DRIVER_COMPILER;
    case 3:
      return trace::OVERHEAD_BUFFER_FLUSH;
    case 4:
      return trace::OVERHEAD_INSTRUMENTATION;
    case 5:
      return trace::OVERHEAD_RESOURCE;
    case 6:
      return trace::OVERHEAD_MODULE_LOADING;
    case 7:
      return trace::OVERHEAD_LAZY_FUNCTION_LOADING;
    case 8:
      return trace::OVERHEAD_COMMAND_BUFFER_FULL;
    default:
      return trace::OVERHEAD_UNKNOWN;
  }
}

// NvtxPushPopRange, NvtxStartEndRange and their nvtxt twins.
bool is_range(int64_t event_type) {
  return event_type == 59 || event_type == 60 || event_type == 70 || event_type == 71;
}
bool is_mark(int64_t event_type) { return event_type == 34 || event_type == 65; }

// torch.autograd.profiler.emit_nvtx: "aten::to, op_id = 990347", "…, seq = 12, sizes = […]".
std::string_view without_torch_suffix(std::string_view text, bool& framework) {
  for (const std::string_view suffix : {", op_id = ", ", seq = "}) {
    const size_t at = text.find(suffix);
    if (at == text.npos) continue;
    framework = true;
    text = text.substr(0, at);
  }
  framework |= text.substr(0, 6) == "aten::";
  return text;
}

std::string uuid_bytes(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  // All zero: not known.
  const bool known = bytes.size() == 16 && bytes.find_first_not_of('\0') != bytes.npos;
  return known ? bytes : std::string();
}

class NsysImport {
 public:
  NsysImport(std::string_view bytes, const std::string& path, Recording& recording)
      : file_(bytes), path_(path), recording_(recording) {}

  Expected<void> run() {
    if (auto checked = check(); !checked) return checked;
    read_strings();
    read_kernels();
    read_copies();
    read_graphs();
    read_calls();
    read_edges();
    read_overheads();
    const bool has_cuda = !sides_.empty();
    read_nvtx();
    if (!has_cuda) return no_cuda();
    describe();
    for (auto& [global_pid, side] : sides_) {
      side->marks.finish();
      side->builder.finish();
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
  // What one operating-system process did.
  struct Side {
    Side(Recording& recording, const std::string& path)
        : builder(recording, path), marks(builder) {}
    ImportBuilder builder;
    ImportMarks marks;
    std::set<uint32_t> node_correlations;  // of kernels recorded inside graph launches
  };

  Side& side(uint64_t global_pid) {
    std::unique_ptr<Side>& entry = sides_[global_pid];
    if (!entry) entry = std::make_unique<Side>(recording_, path_);
    return *entry;
  }

  std::string_view string(int64_t id) const {
    const auto found = strings_.find(id);
    return found == strings_.end() ? std::string_view() : std::string_view(found->second);
  }

  Expected<void> check() const {
    const auto& tables = file_.tables();
    const auto nsys_table = [](const std::string& name) {
      return name.rfind("CUPTI_ACTIVITY_KIND_", 0) == 0 || name == "TARGET_INFO_SYSTEM_ENV" ||
             name == "META_DATA_EXPORT" || name == "EXPORT_META_DATA" || name == "ProcessStreams";
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

  void read_strings() {
    file_.scan("StringIds", {"id", "value"}, [this](const SqliteRow& row) {
      strings_.emplace(row.integer(0), std::string(row.text(1)));
    });
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
                 Side& to = side(static_cast<uint64_t>(row.integer(6)));
                 OpDescriptor op;
                 op.kind = trace::OP_KERNEL;
                 std::string_view name = string(row.integer(7));
                 if (name.empty()) name = string(row.integer(8));
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
                 Side& to = side(static_cast<uint64_t>(row.integer(6)));
                 OpDescriptor op;
                 op.kind = trace::OP_MEMCPY;
                 place(row, 2, to, op);
                 op.bytes = static_cast<uint64_t>(row.integer(7));
                 op.copy_kind = copy_kind(row.integer(8));
                 op.src_kind = memory_kind(row.integer(9, -1));
                 op.dst_kind = memory_kind(row.integer(10, -1));
                 op.graph_node_id = static_cast<uint64_t>(row.integer(11));
                 to.builder.saw(trace::KIND_MEMCPY);
                 add(row, to, op, 5);
               });
    file_.scan("CUPTI_ACTIVITY_KIND_MEMSET",
               {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
                "bytes", "memKind", "graphNodeId"},
               [this](const SqliteRow& row) {
                 Side& to = side(static_cast<uint64_t>(row.integer(6)));
                 OpDescriptor op;
                 op.kind = trace::OP_MEMSET;
                 place(row, 2, to, op);
                 op.bytes = static_cast<uint64_t>(row.integer(7));
                 op.dst_kind = memory_kind(row.integer(8, -1));
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
                 Side& to = side(static_cast<uint64_t>(row.integer(6)));
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
    to.builder.add_op(to.builder.op_descriptor(op), row.integer(0), row.integer(1),
                      row.id(correlation));
  }

  void read_calls() {
    file_.scan("CUPTI_ACTIVITY_KIND_RUNTIME",
               {"start", "end", "globalTid", "correlationId", "nameId"},
               [this](const SqliteRow& row) {
                 Side& to = side(process_of(row.integer(2)));
                 const std::string_view text = string(row.integer(4));
                 const CallName name = classify_call(text);
                 CallDescriptor call;
                 call.call_class = name.call_class;
                 call.copy_kind = name.copy_kind;
                 call.driver = name.driver;
                 call.name = recording_.strings.add(text);
                 call.thread_id = thread_of(row.integer(2));
                 to.builder.add_call(to.builder.call_descriptor(call), row.integer(0),
                                     row.integer(1), row.id(3));
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
                 Side& to = side(global_pid);
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

  void read_overheads() {
    const auto take = [this](const SqliteRow& row, trace::OverheadKind kind) {
      const auto found = sides_.find(process_of(row.integer(2)));
      if (found == sides_.end()) return;
      found->second->builder.saw(trace::KIND_OVERHEAD);
      found->second->builder.add_overhead(
          {kind, thread_of(row.integer(2)), row.integer(0), row.integer(1)});
    };
    file_.scan("CUPTI_ACTIVITY_KIND_OVERHEAD", {"start", "end", "globalTid", "overheadType"},
               [&take](const SqliteRow& row) { take(row, overhead_kind(row.integer(3))); });
    file_.scan("PROFILER_OVERHEAD", {"start", "end", "globalTid"},
               [&take](const SqliteRow& row) { take(row, trace::OVERHEAD_OWN); });
  }

  void read_nvtx() {
    file_.scan("NVTX_EVENTS", {"start", "end", "eventType", "globalTid", "text", "textId"},
               [this](const SqliteRow& row) {
                 const int64_t type = row.integer(2);
                 // A range that never ended has no end.
                 if (!(is_range(type) && row.has(1)) && !is_mark(type)) return;
                 const auto found = sides_.find(process_of(row.integer(3)));
                 if (found == sides_.end()) return;
                 std::string_view text = row.text(4);
                 if (text.empty()) text = string(row.integer(5));
                 take_nvtx(*found->second, text, thread_of(row.integer(3)), row.integer(0),
                           is_mark(type) ? row.integer(0) : row.integer(1), is_mark(type));
               });
  }

  void take_nvtx(Side& to, std::string_view text, uint32_t thread_id, Ns begin_ns, Ns end_ns,
                 bool mark) {
    to.builder.saw(trace::KIND_NVTX);
    if (mark) {
      HostEvent event;
      event.kind = trace::EVENT_MARK;
      event.thread_id = thread_id;
      event.begin_ns = event.end_ns = begin_ns;
      event.a = recording_.strings.add(text);
      to.builder.add_event(event);
      return;
    }
    bool framework = false;
    const std::string_view name = without_torch_suffix(text, framework);
    if (to.marks.take(name, thread_id, begin_ns, end_ns) == ImportMarks::Taken::kWhole) return;
    to.marks.take_user_step(name, thread_id, begin_ns, end_ns);
    to.builder.add_range(name, framework ? trace::RANGE_FRAMEWORK_OP : trace::RANGE_NVTX, thread_id,
                         begin_ns, end_ns);
  }

  void describe() {
    Ns utc_ns = 0;
    file_.scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"},
               [&utc_ns](const SqliteRow& row) { utc_ns = row.integer(0); });
    std::string host;
    file_.scan("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&host](const SqliteRow& row) {
      if (row.text(0) == "Hostname") host = std::string(row.text(1));
    });
    std::string tool = "Nsight Systems";
    for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
      file_.scan(table, {"name", "value"}, [&tool](const SqliteRow& row) {
        if (row.text(0) == "EXPORT_PRODUCT_VERSION") {
          tool = "Nsight Systems " + std::string(row.text(1));
        }
      });
    }
    std::map<uint64_t, std::string> names;
    file_.scan("PROCESSES", {"globalPid", "name"}, [&names](const SqliteRow& row) {
      names[static_cast<uint64_t>(row.integer(0))] = std::string(row.text(1));
    });
    for (auto& [global_pid, side] : sides_) {
      trace::Header& header = side->builder.process().header;
      header.set_tool(tool);
      header.mutable_process()->set_pid(pid_of(global_pid));
      header.mutable_process()->set_host(host);
      header.mutable_process()->set_executable(names[global_pid]);
      if (utc_ns > 0) {
        // Times count from the start of the session.
        header.mutable_clock()->set_monotonic_ns(0);
        header.mutable_clock()->set_realtime_ns(utc_ns);
        header.mutable_clock()->set_uncertainty_ns(1'000'000);
        side->builder.process().clock_pairs.push_back(header.clock());
      }
    }
    file_.scan("ThreadNames", {"nameId", "globalTid"}, [this](const SqliteRow& row) {
      const auto found = sides_.find(process_of(row.integer(1)));
      if (found == sides_.end()) return;
      found->second->builder.process().thread_names[thread_of(row.integer(1))] =
          std::string(string(row.integer(0)));
    });
    describe_devices();
  }

  void describe_devices() {
    // CUDA ordinal of a process to GPU of the machine; equal where the table is absent.
    std::map<std::pair<uint32_t, uint32_t>, int64_t> gpu_of;
    file_.scan("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"},
               [&gpu_of](const SqliteRow& row) {
                 gpu_of[{row.id(2), row.id(1)}] = row.integer(0);
               });
    std::map<int64_t, trace::Device> gpus;
    file_.scan("TARGET_INFO_GPU",
               {"id", "name", "busLocation", "totalMemory", "smCount", "uuid", "computeMajor",
                "computeMinor", "maxBlocksPerSm", "maxWarpsPerSm", "threadsPerWarp",
                "maxRegistersPerSm", "maxShmemPerSm", "clockRate"},
               [&gpus](const SqliteRow& row) {
                 trace::Device& gpu = gpus[row.integer(0)];
                 gpu.set_name(std::string(row.text(1)));
                 gpu.set_pci_bus_id(std::string(row.text(2)));
                 gpu.set_memory_bytes(static_cast<uint64_t>(row.integer(3)));
                 gpu.set_sm_count(row.id(4));
                 gpu.set_uuid(uuid_bytes(row.text(5)));
                 gpu.set_compute_major(row.id(6));
                 gpu.set_compute_minor(row.id(7));
                 gpu.set_max_blocks_per_sm(row.id(8));
                 gpu.set_max_threads_per_sm(row.id(9) * row.id(10));
                 gpu.set_warp_size(row.id(10));
                 gpu.set_max_registers_per_sm(row.id(11));
                 gpu.set_max_shared_bytes_per_sm(static_cast<uint64_t>(row.integer(12)));
                 gpu.set_core_clock_khz(static_cast<uint32_t>(row.integer(13) / 1000));
               });
    for (auto& [global_pid, side] : sides_) {
      for (Device& device : side->builder.process().devices) {
        const uint32_t ordinal = device.info.device_id();
        const auto mapped = gpu_of.find({pid_of(global_pid), ordinal});
        const auto gpu = gpus.find(mapped == gpu_of.end() ? ordinal : mapped->second);
        if (gpu == gpus.end()) continue;
        device.info = gpu->second;
        device.info.set_device_id(ordinal);
        device.identity = path_ + "/gpu" + std::to_string(gpu->first);
      }
    }
  }

  SqliteFile file_;
  std::string path_;
  Recording& recording_;
  std::unordered_map<int64_t, std::string> strings_;
  std::map<uint64_t, std::unique_ptr<Side>> sides_;
};

}  // namespace

Expected<void> import_nsys(std::string_view bytes, const std::string& path, Recording& recording) {
  return NsysImport(bytes, path, recording).run();
}

}  // namespace idlescope::read
