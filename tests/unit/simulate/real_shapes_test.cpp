// The engine against real recordings: the host calls and device ops of an H200 job, run
// again by the simulator's rules, must take as long as they took.
//
// What is taken from the recording: the duration of each device op, the host time between
// two calls and the calls' own time where nothing holds them. What the engine has to find:
// when each op runs, how long synchronisations, blocking copies and full queues hold the
// host, and so the length of the whole. The recordings are those of
// tests/golden/real, or of the directory that IDLESCOPE_REAL_TRACES names.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "analysis/simulate/engine.h"
#include "analysis/simulate/program_builder.h"

namespace idlescope::simulate {
namespace {

struct RealOp {
  Ns begin_ns;
  Ns end_ns;
  const trace::GpuOpDescriptor* what;
  uint32_t correlation;
};

struct RealCall {
  Ns begin_ns;
  Ns end_ns;
  const trace::HostCallDescriptor* what;
  uint32_t correlation;
};

struct RealWindow {
  std::vector<RealOp> ops;      // by begin
  std::vector<RealCall> calls;  // outermost only, by begin
};

std::string unpacked(const std::string& frame) {
  std::string out;
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  std::string part(1 << 16, '\0');
  while (in.pos < in.size) {
    ZSTD_outBuffer to{part.data(), part.size(), 0};
    if (ZSTD_isError(ZSTD_decompressStream(context, &to, &in)) != 0) break;
    out.append(part, 0, to.pos);
  }
  ZSTD_outBuffer to{part.data(), part.size(), 0};
  while (ZSTD_isError(ZSTD_decompressStream(context, &to, &in)) == 0 && to.pos > 0) {
    out.append(part, 0, to.pos);
    to.pos = 0;
  }
  ZSTD_freeDCtx(context);
  return out;
}

// Packet by packet (proto/README.md, framing): a live or killed job leaves room behind them.
trace::Trace read_packets(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  trace::Trace out;
  size_t at = 0;
  while (at < bytes.size() && bytes[at] == 0x0A) {
    uint64_t length = 0;
    int shift = 0;
    ++at;
    while (at < bytes.size()) {
      auto byte = static_cast<unsigned char>(bytes[at++]);
      length |= uint64_t{byte & 0x7FU} << shift;
      shift += 7;
      if (byte < 0x80) break;
    }
    if (length > bytes.size() - at) break;
    trace::Packet packet;
    packet.ParseFromArray(bytes.data() + at, static_cast<int>(length));
    at += length;
    if (packet.has_zstd_trace()) {
      std::string inner = unpacked(packet.zstd_trace());
      out.MergeFromString(inner);
    } else {
      *out.add_packet() = std::move(packet);
    }
  }
  return out;
}

// The window with most device ops.
RealWindow read_window(const trace::Trace& file) {
  std::map<uint32_t, const trace::GpuOpDescriptor*> op_descriptors;
  std::map<uint32_t, const trace::HostCallDescriptor*> call_descriptors;
  for (const trace::Packet& p : file.packet()) {
    for (const auto& d : p.descriptors().gpu_op()) op_descriptors[d.id()] = &d;
    for (const auto& d : p.descriptors().host_call()) call_descriptors[d.id()] = &d;
  }
  std::map<uint32_t, RealWindow> windows;
  auto columns = [](const auto& batch, auto&& add) {
    Ns at = batch.base_ns();
    uint32_t correlation = 0;
    std::map<uint32_t, std::pair<Ns, Ns>> last;  // gap and duration, by kind (format 1.1)
    for (int i = 0; i < batch.descriptor_id_size(); ++i) {
      correlation += static_cast<uint32_t>(batch.correlation_delta(i));
      if (batch.gap_change_ns_size() == 0) {
        at += batch.begin_delta_ns(i);
        add(at, at + static_cast<Ns>(batch.duration_ns(i)), batch.descriptor_id(i), correlation);
        continue;
      }
      auto& [gap, duration] = last[batch.descriptor_id(i) % 1024];
      gap += batch.gap_change_ns(i);
      duration += batch.duration_change_ns(i);
      add(at + gap, at + gap + duration, batch.descriptor_id(i), correlation);
      at += gap + duration;
    }
  };
  for (const trace::Packet& p : file.packet()) {
    columns(p.gpu_ops(), [&](Ns begin, Ns end, uint32_t id, uint32_t correlation) {
      windows[p.gpu_ops().window_id()].ops.push_back({begin, end, op_descriptors[id], correlation});
    });
    columns(p.host_calls(), [&](Ns begin, Ns end, uint32_t id, uint32_t correlation) {
      windows[p.host_calls().window_id()].calls.push_back(
          {begin, end, call_descriptors[id], correlation});
    });
  }
  RealWindow best;
  for (auto& [id, window] : windows) {
    if (window.ops.size() > best.ops.size()) best = std::move(window);
  }
  std::sort(best.ops.begin(), best.ops.end(),
            [](const RealOp& a, const RealOp& b) { return a.begin_ns < b.begin_ns; });
  std::sort(best.calls.begin(), best.calls.end(), [](const RealCall& a, const RealCall& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  // A driver call lies inside its runtime call.
  std::map<uint32_t, Ns> open;
  std::vector<RealCall> outer;
  for (const RealCall& call : best.calls) {
    Ns& until = open[call.what->thread_id()];
    if (call.end_ns <= until) continue;
    until = call.end_ns;
    outer.push_back(call);
  }
  best.calls = std::move(outer);
  return best;
}

bool waits(const RealCall& call) {
  trace::CallClass c = call.what->call_class();
  return c == trace::CALL_STREAM_SYNC || c == trace::CALL_DEVICE_SYNC ||
         c == trace::CALL_EVENT_SYNC;
}

template <typename T>
T median(std::vector<T> values, T fallback) {
  if (values.empty()) return fallback;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Constants as analysis 0 takes them from a trace.
Machine measure(const RealWindow& window, const std::map<uint32_t, size_t>& call_of) {
  Machine m;
  std::vector<Ns> latency;
  std::vector<Ns> gap;
  std::vector<Ns> back;
  std::vector<Ns> launch;
  for (size_t i = 1; i < window.ops.size(); ++i) {
    const RealOp& op = window.ops[i];
    auto call = call_of.find(op.correlation);
    if (call == call_of.end()) continue;
    const RealCall& c = window.calls[call->second];
    if (c.begin_ns > window.ops[i - 1].end_ns) latency.push_back(op.begin_ns - c.begin_ns);
    if (c.end_ns < window.ops[i - 1].end_ns) gap.push_back(op.begin_ns - window.ops[i - 1].end_ns);
    if (c.what->call_class() == trace::CALL_LAUNCH) launch.push_back(c.end_ns - c.begin_ns);
  }
  for (const RealCall& c : window.calls) {
    if (!waits(c)) continue;
    auto after = std::upper_bound(window.ops.begin(), window.ops.end(), c.end_ns,
                                  [](Ns t, const RealOp& op) { return t < op.begin_ns; });
    if (after == window.ops.begin()) continue;
    Ns end = std::prev(after)->end_ns;
    if (end > c.begin_ns && end < c.end_ns) back.push_back(c.end_ns - end);
  }
  m.launch_latency_ns = median<Ns>(latency, m.launch_latency_ns);
  m.dispatch_gap_ns = std::max<Ns>(0, median<Ns>(gap, m.dispatch_gap_ns));
  m.sync_return_ns = median<Ns>(back, m.sync_return_ns);
  m.launch_call_ns = median<Ns>(launch, m.launch_call_ns);
  return m;
}

struct Replay {
  Ns real_ns = 0;
  Ns simulated_ns = 0;
  size_t ops = 0;
};

Replay run_again(const RealWindow& window) {
  std::map<uint32_t, size_t> call_of;
  for (size_t i = 0; i < window.calls.size(); ++i) call_of[window.calls[i].correlation] = i;
  std::map<size_t, std::vector<const RealOp*>> ops_of;
  for (const RealOp& op : window.ops) {
    auto call = call_of.find(op.correlation);
    if (call != call_of.end()) ops_of[call->second].push_back(&op);
  }
  Machine machine = measure(window, call_of);
  ProgramBuilder b(machine, 1);
  uint32_t thread = b.thread(Role::kMain, 0, b.process(0));
  std::map<uint32_t, uint16_t> streams;
  Ns at = window.calls.front().begin_ns;
  uint32_t graph = 0;
  Replay out;
  std::vector<const RealOp*> real;  // as the program's ops
  for (size_t i = 0; i < window.calls.size(); ++i) {
    const RealCall& call = window.calls[i];
    b.run(thread, std::max<Ns>(0, call.begin_ns - at), report::HOST_PYTHON);
    at = std::max(at, call.end_ns);
    auto launched = ops_of.find(i);
    if (launched != ops_of.end()) {
      std::vector<OpSpec> nodes;
      for (const RealOp* op : launched->second) {
        OpSpec spec;
        spec.kind = op->what->kind() == trace::OP_GRAPH ? trace::OP_KERNEL : op->what->kind();
        spec.copy_kind = op->what->copy_kind();
        spec.src = op->what->src_kind();
        spec.dst = op->what->dst_kind();
        auto stream = streams.try_emplace(op->what->stream_id(),
                                          static_cast<uint16_t>(streams.size() % kStreams));
        spec.stream = stream.first->second;
        spec.duration_ns = op->end_ns - op->begin_ns;
        spec.bytes = op->what->bytes();
        nodes.push_back(spec);
        real.push_back(op);
      }
      bool pageable =
          nodes[0].kind == trace::OP_MEMCPY &&
          (nodes[0].src == trace::MEMORY_PAGEABLE || nodes[0].dst == trace::MEMORY_PAGEABLE);
      if (nodes.size() > 1) {
        ++graph;
        for (size_t n = 0; n < nodes.size(); ++n) {
          nodes[n].graph = graph;
          nodes[n].node = static_cast<uint32_t>(n);
        }
        b.launch_graph(thread, nodes);
      } else if (nodes[0].kind == trace::OP_MEMCPY) {
        b.copy(thread, nodes[0], pageable && nodes[0].bytes > 65536, report::XFER_OTHER);
      } else {
        b.launch(thread, nodes[0]);
      }
    } else if (waits(call)) {
      b.device_sync(thread, 0, call.what->call_class(), "sync", 0, 0, report::SYNC_EXPLICIT);
    } else {
      b.call(thread, call.what->call_class(), "other", call.end_ns - call.begin_ns,
             report::HOST_PYTHON);
    }
  }
  Execution run = execute(b.program());
  EXPECT_TRUE(run.complete);
  // The last 60 % of the ops: first use of modules and memory is over.
  size_t first = real.size() * 2 / 5;
  Ns simulated_end = 0;
  Ns real_end = 0;
  for (size_t op = first; op < real.size(); ++op) {
    simulated_end = std::max(simulated_end, run.ops[op].end_ns);
    real_end = std::max(real_end, real[op]->end_ns);
  }
  out.ops = real.size() - first;
  out.simulated_ns = simulated_end - run.ops[first].begin_ns;
  out.real_ns = real_end - real[first]->begin_ns;
  return out;
}

TEST(RealShapes, TakeAsLongAsTheyTook) {
  namespace fs = std::filesystem;
  const char* elsewhere = std::getenv("IDLESCOPE_REAL_TRACES");
  fs::path root = elsewhere != nullptr ? elsewhere : IDLESCOPE_GOLDEN_REAL;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    bool scenario = entry.path().string().find("scenarios") != std::string::npos;
    if (entry.path().extension() == ".istrace" && !scenario) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  size_t checked = 0;
  for (const fs::path& path : files) {
    trace::Trace file = read_packets(path);
    RealWindow window = read_window(file);
    if (window.ops.size() < 500) continue;  // worker processes, cut files
    Replay r = run_again(window);
    double error = static_cast<double>(r.simulated_ns) / static_cast<double>(r.real_ns) - 1;
    std::printf("%-32s %6zu ops, real %.3f ms, simulated %.3f ms, %+.2f %%\n",
                path.filename().c_str(), r.ops, static_cast<double>(r.real_ns) / 1e6,
                static_cast<double>(r.simulated_ns) / 1e6, 100 * error);
    EXPECT_NEAR(error, 0, 0.05) << path;
    ++checked;
  }
  EXPECT_GE(checked, 3U) << "recordings of three jobs at least";
}

}  // namespace
}  // namespace idlescope::simulate
